"""Self-play for Stable-Baselines3: one policy in both seats, each hand seen from one of them.

An episode is one seat's side of one hand: its own decisions, its own reward, and an end when the
hand ends. The other seat is played by the current policy, inside the environment. So a reward never
crosses from one seat to the other, whose sign it would have to change.

`SelfPlayEnv` plays the PettingZoo face move by move; `SelfPlayVecEnv` plays thousands of hands at
once in tables filled by walking that same face. Given the same deals and draws they do the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import AECEnv
from stable_baselines3.common.vec_env import VecEnv

from algorithms.policies.rows import OBSERVATIONS
from algorithms.support.compiled import compiled
from kuhn_bridge.errors import IllegalActionError, PolicyError
from kuhn_bridge.kuhn_v0 import env as kuhn_env
from kuhn_bridge.rules import DEALS, PLAYERS

Floats: TypeAlias = npt.NDArray[np.float32]
Cumulative: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Case: TypeAlias = tuple[Any, int]

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Tables:
    """A two-player game as its environment shows it: N nodes, D deals, A actions.

    The first R rows of `observations` are what a player to act can see, in the order in which
    policies list them; what the seats see at the end follows.
    """

    observations: Floats  # (R + E, size)
    masks: Bools  # (R, A)
    deals: tuple[Any, ...]  # D, as `reset` takes them
    roots: Integers  # (D,) the node after each deal
    actor: Integers  # (N,) the seat to act, or NOBODY at the end
    seen: Integers  # (N, 2) the row of `observations` that each seat sees; only of actors and ends
    after: Integers  # (N, A) the node after each action
    rewards: Floats  # (N, 2)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every deal from every seat."""
        return tuple((deal, seat) for deal in self.deals for seat in PLAYERS)

    def index(self) -> dict[bytes, int]:
        """The row of each observation that a player to act can see."""
        return {row.tobytes(): i for i, row in enumerate(self.observations[: len(self.masks)])}


@dataclass(slots=True)
class _Walk:
    """The nodes met so far on a walk through an environment."""

    env: AECEnv[str, Any, Any]
    row_of: dict[bytes, int]
    masks: dict[int, Bools] = field(default_factory=dict)
    observations: dict[int, Floats] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)

    def visit(self, deal: Any, actions: tuple[int, ...] = ()) -> int:
        """The new node that `actions` lead to after `deal`, with all that follows it."""
        env = self.env
        env.reset(options={"cards": deal})
        for action in actions:
            env.step(action)
        over = all(env.terminations.values())
        agents = env.possible_agents
        actor = NOBODY if over else agents.index(env.agent_selection)
        node: dict[str, Any] = {
            "actor": actor,
            "seen": [self._row(agents[s]) if over or s == actor else NOBODY for s in PLAYERS],
            "rewards": [env.rewards[agent] for agent in agents],
        }
        number = len(self.nodes)
        self.nodes.append(node)
        legal = np.zeros(env.action_space(agents[0]).n, bool)
        if not over:
            legal = env.observe(agents[actor])["action_mask"].astype(bool)
            if (self.masks.setdefault(node["seen"][actor], legal) != legal).any():
                raise PolicyError(f"{deal}, {actions}: what is seen must decide what is legal")
        node["after"] = [
            self.visit(deal, (*actions, action)) if ok else NOBODY
            for action, ok in enumerate(legal)
        ]
        return number

    def _row(self, agent: str) -> int:
        seen = self.env.observe(agent)["observation"]
        row = self.row_of.setdefault(seen.tobytes(), len(self.row_of))
        self.observations[row] = seen
        return row


def walk(env: AECEnv[str, Any, Any], deals: Sequence[Any], order: Iterable[Floats]) -> Tables:
    """The tables of a game, from playing every deal and action sequence in `env`.

    `order` lists what players to act can see, as policies list it; `env.reset` takes a deal as
    `options={"cards": deal}`.
    """
    row_of = {seen.tobytes(): row for row, seen in enumerate(order)}
    rows = len(row_of)
    met = _Walk(env, row_of)
    roots = [met.visit(deal) for deal in deals]
    if set(met.masks) != set(range(rows)):
        raise PolicyError(f"the walk met decisions {sorted(met.masks)}; policies list {rows}")
    columns = {key: [node[key] for node in met.nodes] for key in met.nodes[0]}
    return Tables(
        observations=np.array([met.observations[row] for row in range(len(row_of))]),
        masks=np.array([met.masks[row] for row in range(rows)]),
        deals=tuple(deals),
        roots=np.array(roots),
        actor=np.array(columns["actor"]),
        seen=np.array(columns["seen"]),
        after=np.array(columns["after"]),
        rewards=np.array(columns["rewards"], np.float32),
    )


@cache
def kuhn_tables() -> Tables:
    """Kuhn poker's 54 dealt nodes from its PettingZoo face; rows as in `TabularPolicy`."""
    return walk(kuhn_env(), DEALS, OBSERVATIONS)


def cumulative(probabilities: npt.ArrayLike) -> Cumulative:
    """Running sums of each row, `(R, A)`, ending in exactly 1 at the last action with weight."""
    sums = np.cumsum(np.asarray(probabilities, np.float64), axis=1)
    return np.asarray(sums / sums[:, -1:])


class LegalActions(spaces.Discrete):
    """An environment's action IDs; a sample is legal now. Pickled, it is a plain `Discrete`."""

    def __init__(self, env: SelfPlayEnv) -> None:
        super().__init__(env.tables.masks.shape[1])
        self._env = env

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """A legal action, unless `mask` or `probability` asks for something else."""
        if mask is None and probability is None:
            mask = self._env.action_masks().astype(np.int8)
        return super().sample(mask, probability)

    def __reduce__(self) -> tuple[type[spaces.Discrete], tuple[int]]:
        return spaces.Discrete, (int(self.n),)


class SelfPlayEnv(gymnasium.Env[Floats, np.int64]):
    """One seat's side of hands on the PettingZoo face: the readable reference.

    The k-th hand is case `first + k` of every deal from every seat, over and over.
    """

    def __init__(self, *, tables: Tables | None = None, first: int = 0) -> None:
        self.tables = tables or kuhn_tables()
        self.observation_space = _observations(self.tables)
        self.action_space = LegalActions(self)
        self._env: AECEnv[str, Any, Any] = kuhn_env()
        self._row_of = self.tables.index()
        self._case, self._moves = first - 1, list[int]()
        self._agent = self._env.possible_agents[0]
        self.set_opponent(uniform(self.tables))

    def set_opponent(self, probabilities: npt.ArrayLike) -> None:
        """Who plays the other seat: float `(R, A)`, rows as in `Tables`."""
        self._opponent = cumulative(probabilities)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """The next case's first decision; `options={"case": i}` goes to case i."""
        super().reset(seed=seed)
        self._begin((options or {}).get("case", self._case + 1))
        self._answer()
        return self._seen(), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """The seat's action, then the other's until the seat is to act or the hand is over."""
        self._move(int(action))
        self._answer()
        over = self._env.terminations[self._agent]
        return self._seen(), float(self._env.rewards[self._agent]), over, False, {}

    def action_masks(self) -> Bools:
        """What the seat may do now: bool `(A,)`."""
        mask: Bools = self._env.observe(self._agent)["action_mask"].astype(bool)
        return mask

    def get_state(self) -> dict[str, Any]:
        """All that the next step depends on, besides the opponent."""
        rng = self.np_random.bit_generator.state
        return {"case": self._case, "moves": list(self._moves), "rng": rng}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave."""
        self._begin(state["case"])
        for action in state["moves"]:
            self._move(action)
        self.np_random.bit_generator.state = state["rng"]

    def _begin(self, case: int) -> None:
        deal, seat = self.tables.cases[case % len(self.tables.cases)]
        self._case, self._moves = case, []
        self._agent = self._env.possible_agents[seat]
        self._env.reset(options={"cards": deal})

    def _move(self, action: int) -> None:
        self._env.step(action)
        self._moves.append(action)

    def _answer(self) -> None:
        """Let the other seat act as long as it is its turn."""
        env = self._env
        while not env.terminations[self._agent] and env.agent_selection != self._agent:
            row = self._row_of[env.observe(env.agent_selection)["observation"].tobytes()]
            self._move(int((self._opponent[row] <= self.np_random.random()).sum()))

    def _seen(self) -> Floats:
        seen: Floats = self._env.observe(self._agent)["observation"]
        return seen


class SelfPlayVecEnv(VecEnv):
    """Many hands at once: slot i is `SelfPlayEnv(first=i)`, played in tables."""

    def __init__(self, n_envs: int, *, tables: Tables | None = None, seed: int = 0) -> None:
        self.tables = tables = tables or kuhn_tables()
        self.render_mode = None
        super().__init__(n_envs, _observations(tables), spaces.Discrete(tables.masks.shape[1]))
        self._rng = np.random.default_rng(seed)
        self._slots = _Slots(
            np.arange(n_envs),
            np.zeros(n_envs, np.int64),
            np.zeros(n_envs, np.float32),
            np.zeros(n_envs, np.int64),
        )
        self._actions = np.zeros(n_envs, np.int64)
        # SB3 only reads these, so every slot that ends alike may share one.
        infos = [{"terminal_observation": seen} for seen in tables.observations]
        self._infos = np.array([*infos, {}], object)  # NOBODY, -1, is the last
        self.set_opponent(uniform(tables))

    def set_opponent(self, probabilities: npt.ArrayLike) -> None:
        """Who plays the other seats: float `(R, A)`, rows as in `Tables`."""
        t = self.tables
        self._game = _Game(cumulative(probabilities), t.roots, t.actor, t.seen, t.after, t.rewards)

    def action_masks(self) -> Bools:
        """What every slot may do now: bool `(n_envs, A)`."""
        return self.tables.masks[self._rows()]

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Restart the draws."""
        self._rng = np.random.default_rng(seed)
        return [seed] * self.num_envs

    def reset(self) -> Floats:
        """Every slot at the first decision of its first case: `(n_envs, size)`."""
        self._slots.case[:] = np.arange(self.num_envs)
        _reset(self._slots, self._game, self._rng)
        return self.observe()

    def observe(self) -> Floats:
        """What every slot's seat sees now: `(n_envs, size)`."""
        return self.tables.observations[self._rows()]

    def step_async(self, actions: Integers) -> None:
        """Remember every slot's action."""
        self._actions = actions

    def step_wait(self) -> tuple[Floats, Floats, Bools, list[dict[str, Any]]]:
        """Play them; where a hand ends the next one is dealt, as SB3 wants it."""
        wrong = _step(self._actions, self._slots, self._game, self._rng)
        if wrong != NOBODY:
            raise IllegalActionError(f"action {self._actions[wrong]} is illegal in slot {wrong}")
        end = self._slots.end
        return self.observe(), self._slots.reward.copy(), end != NOBODY, self._infos[end].tolist()

    def get_state(self) -> dict[str, Any]:
        """All that the next step depends on, besides the opponent."""
        case, node = self._slots.case.tolist(), self._slots.node.tolist()
        return {"case": case, "node": node, "rng": self._rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave."""
        self._slots.case[:], self._slots.node[:] = state["case"], state["node"]
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

    def _rows(self) -> Integers:
        return self.tables.seen[self._slots.node, self._slots.case % len(PLAYERS)]


class _Slots(NamedTuple):
    """Where every slot stands; arrays of n_envs, changed in place by the kernels."""

    case: Integers
    node: Integers
    reward: Floats  # of the last step
    end: Integers  # the row that the seat saw when its hand ended in the last step, or NOBODY


class _Game(NamedTuple):
    """What the kernels look up."""

    opponent: Cumulative
    roots: Integers
    actor: Integers
    seen: Integers
    after: Integers
    rewards: Floats


def uniform(tables: Tables) -> Cumulative:
    """Every legal action equally often: `(R, A)`."""
    return np.asarray(tables.masks / tables.masks.sum(axis=1, keepdims=True))


def _observations(tables: Tables) -> Any:
    return spaces.Box(0, 1, tables.observations.shape[1:], np.float32)


@compiled
def _answer(node: int, seat: int, game: _Game, rng: np.random.Generator) -> int:
    """Where `seat` is to act next or the hand is over; the other seat has moved until then."""
    while game.actor[node] == 1 - seat:
        sums, draw, action = game.opponent[game.seen[node, 1 - seat]], rng.random(), 0
        while sums[action] <= draw:
            action += 1
        node = game.after[node, action]
    return node


@compiled
def _begin(case: int, game: _Game, rng: np.random.Generator) -> int:
    """The first decision of a case."""
    return _answer(game.roots[case // 2 % len(game.roots)], case % 2, game, rng)


@compiled
def _reset(slots: _Slots, game: _Game, rng: np.random.Generator) -> None:
    """Begin every slot's case."""
    for i, case in enumerate(slots.case):
        slots.node[i] = _begin(case, game, rng)


@compiled
def _step(actions: Integers, slots: _Slots, game: _Game, rng: np.random.Generator) -> int:
    """Play every slot's action; the first slot where it is illegal, or NOBODY."""
    case, node = slots.case, slots.node
    for i, action in enumerate(actions):
        if not 0 <= action < game.after.shape[1] or game.after[node[i], action] == NOBODY:
            return i
    for i, action in enumerate(actions):
        seat = case[i] % 2
        node[i] = _answer(game.after[node[i], action], seat, game, rng)
        slots.reward[i] = game.rewards[node[i], seat]
        slots.end[i] = NOBODY
        if game.actor[node[i]] == NOBODY:
            slots.end[i] = game.seen[node[i], seat]
            case[i] += 1
            node[i] = _begin(case[i], game, rng)
    return NOBODY
