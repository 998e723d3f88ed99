"""The rollout buffer of self-play: advantages along each seat's own decisions."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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
        last_step: Callable[[], LastStep],
        scale: float = 1,
        **kwargs: Any,
    ) -> None:
        self._last_step = last_step
        self._players = players
        self._scale = np.float32(scale)
        self.carried: dict[str, npt.NDArray[Any]] = {}  # decisions that wait for the next rollout
        super().__init__(n_steps + players - 1, *args, **kwargs)

    def reset(self) -> None:
        """Empty the buffer, except for the decisions that are carried over."""
        super().reset()
        shape = self.buffer_size, self.n_envs
        self.acted = np.zeros(shape, np.int8)
        self.ended = np.zeros(shape, np.bool_)
        self.nodes = np.full(shape, UNKNOWN_NODE, np.int32)
        self.returned = np.zeros((*shape, self._players), np.float32)
        self.in_update = np.ones(shape, np.bool_)  # whether this update learns from the decision
        self.pos = self._players - 1
        self.in_update[: self.pos] = False
        if self.carried:
            decisions = (self.carried["row"], self.carried["hand"])  # where they are in the arrays
            self.in_update[decisions] = True
            for name in _CARRIED:
                getattr(self, name)[decisions] = self.carried[name]

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
        self.rollout = self._rollout_in_order()
        stored = self.in_update.copy()
        decisions = _Decisions(
            acted=self.acted, returned=self.returned, ended=self.ended, values=self.values
        )
        end = _End(seats=self._last_step().seats, values=last_values.cpu().numpy().flatten())
        discounts = (self.gamma, self.gae_lambda)
        _seat_advantages(decisions, end, discounts, self.in_update, self.advantages)
        if not self.in_update.any():  # too few steps for any advantage, and SB3 needs a batch
            self.in_update = stored
        self.returns = self.advantages + self.values
        # Carry over what is stored and not learned from, sorted by hand. The next rollout has it in
        # its first rows: the k-th decision of a hand in row k.
        hands, rows = np.nonzero((stored & ~self.in_update).T)
        first_of_hand = np.searchsorted(hands, hands)
        self.carried = {name: getattr(self, name)[rows, hands] for name in _CARRIED}
        self.carried["hand"] = hands
        self.carried["row"] = np.arange(len(hands)) - first_of_hand

    def _rollout_in_order(self) -> Rollout:
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
            for name in (*_STORED, "nodes", "advantages", "returns", "in_update"):
                setattr(self, name, self.swap_and_flatten(getattr(self, name)))
            self._indices = np.flatnonzero(self.in_update)
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


class _Decisions(NamedTuple):
    """The rows of the buffer: decisions of n hands, in the order of play."""

    acted: Int8Array  # (rows, n) the seat that acted
    returned: Float32Array  # (rows, n, P) the returns where a hand ended, else 0
    ended: BoolArray  # (rows, n) whether the hand ended
    values: Float32Array  # (rows, n) of the value network


class _End(NamedTuple):
    """Where a rollout ends: the seats to act in n hands, and their values."""

    seats: Int8Array  # (n,)
    values: Float32Array  # (n,)


@compiled
def _seat_advantages(
    decisions: _Decisions,
    end: _End,
    discounts: tuple[float, float],
    in_update: BoolArray,
    advantages: Float32Array,
) -> None:
    """Fill in `advantages` `(rows, n)`; clear `in_update` where the advantage is not known yet.

    Each hand is read from its last decision to its first. On the way there is, for each seat, what
    its next decision contributes to the equation of `SeatRolloutBuffer`.
    """
    gamma, gae_lambda = discounts
    rows, hands, players = decisions.returned.shape
    next_value = np.zeros(players)
    next_advantage = np.zeros(players)
    reward = np.zeros(players)  # since the decision that comes next in this loop
    is_known = np.zeros(players, np.bool_)  # whether `next_value` is known
    for hand in range(hands):
        next_value[:] = 0.0
        next_advantage[:] = 0.0
        reward[:] = 0.0
        is_known[:] = False
        seat_to_act = end.seats[hand]
        next_value[seat_to_act] = end.values[hand]
        is_known[seat_to_act] = True
        for row in range(rows - 1, -1, -1):
            if decisions.ended[row, hand]:
                next_value[:] = 0.0
                next_advantage[:] = 0.0
                reward[:] = decisions.returned[row, hand]
                is_known[:] = True
            if not in_update[row, hand]:
                continue
            seat = decisions.acted[row, hand]
            value = decisions.values[row, hand]
            advantage = 0.0
            if is_known[seat]:
                advantage = reward[seat] + gamma * next_value[seat] - value
                advantage += gamma * gae_lambda * next_advantage[seat]
            in_update[row, hand] = is_known[seat]
            advantages[row, hand] = advantage
            next_value[seat] = value
            next_advantage[seat] = advantage
            reward[seat] = 0.0
            is_known[seat] = True
