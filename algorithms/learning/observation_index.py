"""Which information set a tensor belongs to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from algorithms.support.arrays import Float32Array, UInt64Array
from kuhn_bridge.errors import BridgeError


class ObservationIndex:
    """From tensors `(N, size)` to their rows `(N,)` among known ones `(I, size)`, all different."""

    def __init__(self, known: Float32Array) -> None:
        self._known = np.ascontiguousarray(known, np.float32)
        rng = np.random.default_rng(0)
        while True:  # two of the known ones with one hash are as good as impossible
            self._factors = rng.integers(2**63, size=known.shape[1], dtype=np.uint64) * 2 + 1
            hashes = self._hashes(self._known)
            self._order = np.argsort(hashes)
            self._sorted = hashes[self._order]
            if (self._sorted[1:] != self._sorted[:-1]).all():
                return

    def __call__(self, observations: Float32Array) -> npt.NDArray[np.int64]:
        """The row of each, `(N,)`."""
        given = np.ascontiguousarray(observations, np.float32)
        places = np.searchsorted(self._sorted, self._hashes(given)).clip(max=len(self._sorted) - 1)
        rows = self._order[places]
        if not np.array_equal(self._known[rows], given):
            raise BridgeError("a tensor that no player to act can see in this game")
        return np.asarray(rows, np.int64)

    def _hashes(self, observations: Float32Array) -> UInt64Array:
        """One number per tensor: its bits times random odd numbers, modulo 2**64."""
        bits = (observations + np.float32(0)).view(np.uint32).astype(np.uint64)  # -0.0 is 0.0
        bits ^= bits >> np.uint64(16)
        return np.asarray((bits * self._factors).sum(axis=1, dtype=np.uint64))
