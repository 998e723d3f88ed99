"""The rollout buffer of self-play: advantages along each seat's own decisions."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer

from algorithms.compiled.jit import compiled
from algorithms.support.arrays import BoolArray, Float32Array, Int8Array, Int32Array

# The arrays of `MaskableRolloutBuffer` that are filled before advantages are known.
_STORED = ("observations", "actions", "values", "log_probs", "action_masks")
_CARRIED = (*_STORED, "acted", "nodes")
UNKNOWN_NODE = -1  # where hands are not played on a tree


class LastStep(NamedTuple):
    """The last step of n hands with P players."""

    acted: Int8Array  # (n,) the seat that acted
    returns: Float32Array  # (n, P) the returns where a hand ended, else 0
    ended: BoolArray  # (n,) whether the hand ended
    seats: Int8Array  # (n,) the seat to act next
    nodes: Int32Array  # (n,) the tree's node at which the seat acted, or UNKNOWN_NODE


Steps: TypeAlias = Callable[[], LastStep]  # of an environment


class Rollout(NamedTuple):
    """All decisions of a rollout in the order of play: T steps of n hands with P players.

    A column is one hand after another: where `ended` is true, the next row begins a new hand. The
    first rows may continue a hand of the rollout before.
    """

    observations: Float32Array  # (T, n, size)
    actions: Float32Array  # (T, n)
    action_masks: Float32Array  # (T, n, A) the legal actions
    log_probs: Float32Array  # (T, n) of the actions, when they were played
    values: Float32Array  # (T, n) of the value network
    acted: Int8Array  # (T, n) the seat that acted
    returns: Float32Array  # (T, n, P) the returns where a hand ended, else 0; divided by `scale`
    ended: BoolArray  # (T, n) whether the hand ended with this decision
    nodes: Int32Array  # (T, n) the tree's node at which the seat acted, or UNKNOWN_NODE


class SeatRolloutBuffer(MaskableRolloutBuffer):
    """A `MaskableRolloutBuffer` for environments in which every decision of every seat is a step.

    SB3's buffer treats an environment as one agent, so credit would cross from seat to seat with
    the wrong sign. Here the k-th decision of a seat in a hand, with value V_k, has the advantage

        A_k = R_k + gamma V_(k+1) - V_k + gamma lambda A_(k+1)

    where k + 1 is the *same seat's* next decision. R_k is the seat's reward until then: its return
    if the hand ends, and then V_(k+1) = A_(k+1) = 0. When the rollout ends, V_(k+1) is known for
    the seat to act. It is not known for another seat's last decision in an unfinished hand: that
    decision is carried over to the next rollout, which continues the hand. The buffer therefore has
    P - 1 more rows than steps; PPO's ratio accounts for the update in between.

    Attributes:
        rollout: the latest rollout in the order of play, without decisions that were carried over.
        batch: the latest batch, as PPO has it.
        batch_nodes: the tree's node of each decision of that batch `(b,)`.
        evaluated_counts: how many decisions of that batch each row of the network's latest outputs
            stands for `(R,)`, and `evaluated_nodes` a node of each; None if each has a row.
        batch_indices: the decisions of that batch `(b,)`, as numbers hand * rows + row; `flattened`
            brings arrays `(rows, n, ...)` into this order.

    `last_step` returns the environment's last step; its returns are divided by `scale`.
    """

    generator_ready: bool
    rollout: Rollout
    batch: Any
    batch_indices: npt.NDArray[np.intp]
    batch_nodes: Int32Array
    evaluated_counts: torch.Tensor | None = None
    evaluated_nodes: Int32Array

    def __init__(
        self,
        n_steps: int,
        *args: Any,
        players: int,
        last_step: Steps,
        scale: float = 1,
        **more: Any,
    ) -> None:
        self._last_step = last_step
        self._players = players
        self._scale = np.float32(scale)
        self.carried: dict[str, npt.NDArray[Any]] = {}  # decisions that wait for the next rollout
        super().__init__(n_steps + players - 1, *args, **more)

    def reset(self) -> None:
        """Empty the buffer, except for the decisions that are carried over."""
        super().reset()
        shape = self.buffer_size, self.n_envs
        self.acted = np.zeros(shape, np.int8)
        self.ended = np.zeros(shape, np.bool_)
        self.nodes = np.full(shape, UNKNOWN_NODE, np.int32)
        self.returned = np.zeros((*shape, self._players), np.float32)
        self.included = np.ones(shape, np.bool_)  # whether this update learns from the decision
        self.pos = self._players - 1
        self.included[: self.pos] = False
        if self.carried:
            place = self.carried["row"], self.carried["hand"]
            self.included[place] = True
            for name in _CARRIED:
                getattr(self, name)[place] = self.carried[name]

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Store a step, the seats that acted, and all players' returns."""
        step = self._last_step()
        self.acted[self.pos] = step.acted
        self.ended[self.pos] = step.ended
        self.nodes[self.pos] = step.nodes
        self.returned[self.pos] = step.returns / self._scale
        super().add(*args, **kwargs)

    def compute_returns_and_advantage(
        self, last_values: torch.Tensor, dones: npt.NDArray[Any]
    ) -> None:
        """Fill in advantages, and the returns that values are fitted to."""
        self.rollout = self._played()
        stored = self.included.copy()
        _seat_advantages(
            (self.acted, self.returned, self.ended, self.values),
            (last_values.cpu().numpy().flatten(), self._last_step().seats),
            (self.gamma, self.gae_lambda),
            self.included,
            self.advantages,
        )
        if not self.included.any():  # too few steps for any seat's next decision: SB3 needs a batch
            self.included = stored
        self.returns = self.advantages + self.values
        hands, rows = np.nonzero((stored & ~self.included).T)  # sorted by hand
        self.carried = {name: getattr(self, name)[rows, hands] for name in _CARRIED}
        first = np.searchsorted(hands, hands)  # the index of a hand's first decision
        self.carried |= {"hand": hands, "row": np.arange(len(hands)) - first}

    def _played(self) -> Rollout:
        """The decisions of this rollout; the rows before them are for those carried over."""
        played = slice(self._players - 1, None)
        return Rollout(
            observations=self.observations[played],
            actions=self.actions[played, :, 0],
            action_masks=self.action_masks[played],
            log_probs=self.log_probs[played],
            values=self.values[played],
            acted=self.acted[played],
            returns=self.returned[played],
            ended=self.ended[played],
            nodes=self.nodes[played],
        )

    def flattened(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """An array with a value per decision `(T, n, ...)`, in the order of `batch_indices`.

        Decisions that were carried over have the value 0.
        """
        rows = np.zeros((self.buffer_size, *values.shape[1:]), values.dtype)
        rows[self._players - 1 :] = values
        return np.asarray(self.swap_and_flatten(rows))

    def get(self, batch_size: int | None = None) -> Iterator[Any]:
        """Batches of about `batch_size` decisions in random order, none of them much smaller."""
        if not self.generator_ready:
            for name in (*_STORED, "nodes", "advantages", "returns", "included"):
                setattr(self, name, self.swap_and_flatten(getattr(self, name)))
            self._indices = np.flatnonzero(self.included)
            self.generator_ready = True
            self.batch = None
        batches = 1 if batch_size is None else max(1, round(len(self._indices) / batch_size))
        if batches == 1:  # all at once, in any order: one batch for all epochs
            if self.batch is None:
                self._choose(self._indices)
            yield self.batch
            return
        for indices in np.array_split(np.random.permutation(self._indices), batches):
            self._choose(indices)
            yield self.batch

    def _choose(self, indices: npt.NDArray[np.intp]) -> None:
        """Make these decisions the latest batch."""
        self.batch_indices = indices
        self.batch_nodes = self.nodes[indices, 0]
        self.batch = self._get_samples(indices)


@compiled
def _seat_advantages(
    played: Any, now: Any, discounts: tuple[float, float], included: BoolArray, advantages: Any
) -> None:
    """Fill in `advantages` `(rows, n)`, and exclude decisions whose advantage is not known yet."""
    acted, returned, ended, values = played
    (last_values, seats), (gamma, gae_lambda) = now, discounts
    rows, hands, players = returned.shape
    next_value, next_advantage, reward = np.zeros((3, players))
    known = np.zeros(players, np.bool_)  # whether the value after the seat's decision is known
    for hand in range(hands):
        next_advantage[:], reward[:], known[:] = 0.0, 0.0, False
        next_value[seats[hand]], known[seats[hand]] = last_values[hand], True
        for row in range(rows - 1, -1, -1):
            if ended[row, hand]:
                next_value[:], next_advantage[:], known[:] = 0.0, 0.0, True
                reward[:] = returned[row, hand]
            if not included[row, hand]:
                continue
            seat, value, advantage = acted[row, hand], values[row, hand], 0.0
            if known[seat]:
                advantage = reward[seat] + gamma * next_value[seat] - value
                advantage += gamma * gae_lambda * next_advantage[seat]
            included[row, hand] = known[seat]
            advantages[row, hand] = advantage
            next_value[seat], next_advantage[seat], reward[seat] = value, advantage, 0.0
            known[seat] = True
