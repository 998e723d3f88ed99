"""Random legal actions for many hands at once: what the speed of a simulator is measured with."""

import numpy as np
import numpy.typing as npt

from algorithms.compiled.jit import STEP, compiled, mixed
from algorithms.compiled.simulator import new_stream
from algorithms.support.arrays import UInt8Array, UInt64Array
from algorithms.tree import Tree

_HALF = np.uint64(32)  # of the bits of a draw


class RandomActions:
    """Draws legal actions of a tree game, all equally likely."""

    def __init__(self, tree: Tree, *, seed: int = 0) -> None:
        # Each row of `_legal_first` (I, A) has the legal actions of an information set before the
        # others, so the k-th legal action is in column k.
        self._legal_first = np.argsort(~tree.legal, axis=1, kind="stable").astype(np.uint8)
        self._num_legal = tree.legal.sum(axis=1).astype(np.uint8)  # (I,)
        self._stream = new_stream(seed)

    def draw(self, infosets: npt.NDArray[np.int32]) -> UInt8Array:
        """An action for each information set: `(n,)` -> `(n,)`."""
        actions = np.empty(len(infosets), np.uint8)
        _draw(self._num_legal, self._legal_first, infosets, self._stream, actions)
        return actions


@compiled
def _draw(
    num_legal: UInt8Array,
    legal_first: UInt8Array,
    infosets: npt.NDArray[np.int32],
    stream: UInt64Array,
    actions: UInt8Array,
) -> None:
    """Fill the actions `(n,)`; the upper 32 random bits choose one of the legal actions."""
    state = stream[0]
    for i in range(len(actions)):
        state += STEP
        infoset = np.uint64(infosets[i])
        bits = mixed(state) >> _HALF
        column = (bits * np.uint64(num_legal[infoset])) >> _HALF
        actions[i] = legal_first[infoset, column]
    stream[0] = state
