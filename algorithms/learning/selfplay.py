"""Self-play for Stable-Baselines3 on any game: one policy in all seats, each hand seen from one.

An episode is one seat's side of one hand: its own decisions, its own reward, and an end when the
hand ends. The other seats are played by the current policy, inside the environment. So a reward
never crosses from one seat to another, where its sign would be wrong.

`SelfPlayEnv` plays the PettingZoo face move by move; `SelfPlayVecEnv` plays thousands of hands at
once on the game's tree. Given the same deals and draws they do the same.

Hands are numbered. Hand k is seen from seat k modulo P, and its deal follows from k as well: every
seat gets every deal as often as chance has it, with less noise than drawn deals would have.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from algorithms.exact.tree import TERMINAL
from algorithms.games import KUHN, Game, as_game
from algorithms.learning.board import Board, begin, board_of, cumulative, deal_of, onward
from algorithms.learning.faces import NOBODY, face_of
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, Int64Array
from algorithms.support.compiled import compiled
from kuhn_bridge.errors import BridgeError, IllegalActionError

ALONE = (
    "nobody has seated the other players, so they play uniformly at random: learn with "
    "callback=SelfPlay(), or call set_opponent(probabilities) yourself"
)


class LegalActions(spaces.Discrete):
    """An environment's action IDs; a sample is legal now. Pickled, it is a plain `Discrete`."""

    def __init__(self, env: SelfPlayEnv) -> None:
        super().__init__(env.game.tree.legal.shape[1])
        self._env = env

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """A legal action, unless `mask` or `probability` asks for something else."""
        if mask is None and probability is None:
            mask = self._env.action_masks().astype(np.int8)
        return super().sample(mask, probability)

    def __reduce__(self) -> tuple[type[spaces.Discrete], tuple[int]]:
        return spaces.Discrete, (int(self.n),)


class SelfPlayEnv(gymnasium.Env[Float32Array, np.int64]):
    """One seat's side of hands on the PettingZoo face: the readable reference.

    It plays the hands `first`, `first` + 1 and so on, without those in which its seat never acts.

    Args:
        game: a `Game` or its name.
        first: the number of its first hand.
        numbered: show the number of the information set, float32 `(1,)`, instead of its tensor.
    """

    def __init__(self, game: Game | str = KUHN, *, first: int = 0, numbered: bool = False) -> None:
        self.game, self._numbered = as_game(game), numbered
        self.observation_space: Any = sights_of(self.game, numbered=numbered)
        self.action_space = LegalActions(self)
        self._board, self._face = board_of(self.game), face_of(self.game)
        self._row_of = {seen.tobytes(): row for row, seen in enumerate(self.game.observations)}
        self._hand, self._seat, self._moves = first - 1, 0, list[int]()
        self._chances, self._replay = list[float](), list[float]()
        self._others, self._seated = cumulative(self.game.tree.uniform()), False

    def set_opponent(self, probabilities: npt.ArrayLike) -> None:
        """Who plays the other seats: float `(I, A)`, rows as in the game's tree."""
        self._others, self._seated = cumulative(probabilities), True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """The next hand's first decision; `options={"hand": k}` goes to hand k."""
        super().reset(seed=seed)
        self._hand = (options or {}).get("hand", self._hand + 1)
        self._begin()
        while self._face.actor() == NOBODY:  # the seat had nothing to decide
            self._hand += 1
            self._begin()
        return self._seen(), {}

    def step(self, action: np.int64) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """The seat's action, then the others' until the seat is to act or the hand is over."""
        self._seated = _seated_or_told(self._seated)
        self._move(int(action))
        self._answer()
        over = self._face.actor() == NOBODY
        reward = self._face.returns()[self._seat] if over else 0.0
        return self._seen(), float(np.float32(reward)), over, False, {}

    def action_masks(self) -> BoolArray:
        """What the seat may do now: bool `(A,)`."""
        over = self._face.actor() == NOBODY
        return np.zeros(self._board.child.shape[1], np.bool_) if over else self._face.mask()

    def get_state(self) -> dict[str, Any]:
        """All that the next step depends on, besides the opponent."""
        rng = self.np_random.bit_generator.state
        moves, chances = list(self._moves), list(self._chances)
        return {"hand": self._hand, "moves": moves, "chances": chances, "rng": rng}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave."""
        self._hand, self._replay = state["hand"], list(state["chances"])
        self._deal()
        for action in state["moves"]:
            self._move(action)
        self.np_random.bit_generator.state = state["rng"]

    def _begin(self) -> None:
        self._deal()
        self._answer()

    def _deal(self) -> None:
        players = self.game.num_players
        number, self._seat = divmod(self._hand, players)
        self._moves, self._chances = [], []
        deal = self._board.deals[deal_of(self._board, number)]
        self._face.reset(self.game.tree.history(int(deal)), self._chance)

    def _move(self, action: int) -> None:
        self._face.step(action)
        self._moves.append(action)

    def _answer(self) -> None:
        """Let the other seats act as long as it is their turn."""
        while self._face.actor() not in (NOBODY, self._seat):
            draw = self.np_random.random()
            self._move(int((self._others[self._row()] <= draw).sum()))

    def _chance(self) -> float:
        """A draw for chance; remembered, since a hand can be gone through again."""
        self._chances.append(self._replay.pop(0) if self._replay else self.np_random.random())
        return self._chances[-1]

    def _row(self) -> int:
        return self._row_of[self._face.seen().tobytes()]

    def _seen(self) -> Float32Array:
        """What the seat sees: after the end nothing, since nothing is left to decide."""
        if self._face.actor() == NOBODY:
            return np.zeros(self.observation_space.shape or (), np.float32)
        return np.array([self._row()], np.float32) if self._numbered else self._face.seen()


class SelfPlayVecEnv(VecEnv):
    """Many hands at once: slot i plays what `SelfPlayEnv(first=i)` plays, on the game's tree.

    Args:
        n_envs: how many hands at a time.
        game: a `Game` or its name.
        seed: decides the draws.
        numbered: show the numbers of information sets, float32 `(n_envs, 1)`, instead of tensors,
            and leave out what slows SB3 down: for `RowPolicy`.
    """

    def __init__(
        self, n_envs: int, game: Game | str = KUHN, *, seed: int = 0, numbered: bool = False
    ) -> None:
        self.game, self._numbered = as_game(game), numbered
        self.render_mode = None
        legal = self.game.tree.legal
        space = sights_of(self.game, numbered=numbered)
        super().__init__(n_envs, space, spaces.Discrete(legal.shape[1]))
        self._legal, self._board = legal, board_of(self.game)
        self._sights = None if numbered else self.game.observations
        self._rng = np.random.default_rng(seed)
        self._slots = _Slots(
            np.arange(n_envs),
            np.zeros(n_envs, np.int64),
            np.zeros(n_envs, np.float32),
            np.zeros(n_envs, np.bool_),
        )
        self._actions = np.zeros(n_envs, np.int64)
        end = {"terminal_observation": np.zeros(space.shape, np.float32)}
        self._infos = np.array([{}, end], object)  # SB3 only reads them, so slots may share one
        self._others, self._seated = cumulative(self.game.tree.uniform()), False

    def set_opponent(self, probabilities: npt.ArrayLike) -> None:
        """Who plays the other seats: float `(I, A)`, rows as in the game's tree."""
        self._others, self._seated = cumulative(probabilities), True

    def action_masks(self) -> BoolArray:
        """What every slot may do now: bool `(n_envs, A)`."""
        return self._legal[self.rows()]

    def rows(self) -> npt.NDArray[np.int32]:
        """The information set that every slot stands in: `(n_envs,)`."""
        return self._board.infoset[self._slots.node]

    def seats(self) -> Int64Array:
        """The seat that every slot plays: `(n_envs,)`."""
        return self._slots.hand % self.game.num_players

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Restart the draws."""
        self._rng = np.random.default_rng(seed)
        return [seed] * self.num_envs

    def reset(self) -> Float32Array:
        """Every slot at the first decision of its first hand: `(n_envs, size)`."""
        self._slots.hand[:] = np.arange(self.num_envs)
        _reset(self._slots, self._board, self._others, self._rng)
        return self.observe()

    def observe(self) -> Float32Array:
        """What every slot's seat sees now: `(n_envs, size)`."""
        rows = self.rows()
        return rows[:, None].astype(np.float32) if self._sights is None else self._sights[rows]

    def step_async(self, actions: Int64Array) -> None:
        """Remember every slot's action."""
        self._actions = actions

    def step_wait(self) -> tuple[Float32Array, Float32Array, BoolArray, list[dict[str, Any]]]:
        """Play them; where a hand ends the next one is dealt, as SB3 wants it."""
        self._seated = _seated_or_told(self._seated)
        wrong = _step(self._actions, self._slots, self._board, self._others, self._rng)
        if wrong != NOBODY:
            raise IllegalActionError(f"action {self._actions[wrong]} is illegal in slot {wrong}")
        ended = self._slots.ended.copy()
        infos = self._infos[ended.astype(np.intp)].tolist()
        if self._numbered:
            ended, infos = ended.view(PassedOver), PassedOverList(infos)
        return self.observe(), self._slots.reward.copy(), ended, infos

    def get_state(self) -> dict[str, Any]:
        """All that the next step depends on, besides the opponent."""
        hand, node = self._slots.hand.tolist(), self._slots.node.tolist()
        return {"hand": hand, "node": node, "rng": self._rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave; hands that cannot be are refused, not played."""
        hand, node = np.array(state["hand"]), np.array(state["node"])
        inside = (hand >= 0) & (node >= 0) & (node < len(self._board.player))
        seats = hand % self.game.num_players
        if not inside.all() or not (self._board.player[node] == seats).all():
            raise BridgeError("a hand in which the learner is not to act")
        self._slots.hand[:], self._slots.node[:] = hand, node
        self._rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        """Nothing is held open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The one attribute that all slots share, once for each."""
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """The same for all slots: they share everything."""
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """One answer for all slots, e.g. one block of masks: thousands would be slow to stack."""
        return [getattr(self, method_name)(*args, **kwargs)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No slot is wrapped."""
        return [False] * self.num_envs


class PassedOverList(list[dict[str, Any]]):
    """A list that a loop passes over; indices, slices and `len` are as ever.

    SB3 goes through `infos` and `dones` one by one after every step, looking for statistics of a
    `Monitor` and for hands that were cut off. There are neither, and the loops take longer than
    everything else together.
    """

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(())


class PassedOver(np.ndarray[Any, Any]):
    """An array that a loop passes over, for the same reason."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _Slots(NamedTuple):
    """Where every slot stands; arrays of n_envs, changed in place by the kernels."""

    hand: Int64Array
    node: Int64Array
    reward: Float32Array  # of the last step
    ended: BoolArray  # whether a hand ended in the last step


def sights_of(game: Game, *, numbered: bool = False) -> spaces.Box:
    """The space of what a seat sees: its information state tensor, or its number."""
    if numbered:
        return spaces.Box(0, len(game.tree.keys), (1,), np.float32)
    seen = game.observations
    low, high = min(0.0, float(seen.min())), max(1.0, float(seen.max()))
    return spaces.Box(low, high, seen.shape[1:], np.float32)


def _seated_or_told(seated: bool) -> bool:
    """Warn whoever plays while nobody has seated the other players; once is enough."""
    if not seated:
        warnings.warn(ALONE, stacklevel=4)
    return True


@compiled
def _begin(
    hand: int, board: Board, others: Float64Array, rng: np.random.Generator
) -> tuple[int, int]:
    """The next hand, from `hand` on, in which its seat has something to decide; and where."""
    players = board.returns.shape[1]
    while True:
        node = onward(board, others, begin(board, hand // players), hand % players, rng)
        if board.player[node] != TERMINAL:
            return hand, node
        hand += 1


@compiled
def _reset(slots: _Slots, board: Board, others: Float64Array, rng: np.random.Generator) -> None:
    """Begin every slot's hand."""
    for i in range(len(slots.hand)):
        slots.hand[i], slots.node[i] = _begin(slots.hand[i], board, others, rng)


@compiled
def _step(
    actions: Int64Array, slots: _Slots, board: Board, others: Float64Array, rng: np.random.Generator
) -> int:
    """Play every slot's action; the first slot where it is illegal, or NOBODY."""
    hand, node = slots.hand, slots.node
    for i, action in enumerate(actions):
        row = board.infoset[node[i]]
        if not 0 <= action < board.child.shape[1] or board.child[row, action] < 0:
            return i
    players = board.returns.shape[1]
    for i, action in enumerate(actions):
        seat, here = hand[i] % players, node[i]
        there = board.first_child[here] + board.child[board.infoset[here], action]
        node[i] = onward(board, others, there, seat, rng)
        slots.reward[i] = board.returns[node[i], seat]
        slots.ended[i] = board.player[node[i]] == TERMINAL
        if slots.ended[i]:
            hand[i], node[i] = _begin(hand[i] + 1, board, others, rng)
    return NOBODY
