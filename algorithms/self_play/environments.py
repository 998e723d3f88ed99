"""Self-play environments for Stable-Baselines3: every decision of every seat is a step.

One policy plays all seats. In a step the player to act decides, and the next observation is that of
the next player to act. SB3's own rollout buffer would treat an environment as one agent and carry
credit from one seat to another with the wrong sign. These environments are therefore guarded: they
refuse to step unless `SelfPlay()` is learning, which keeps the seats apart (`steps_allowed`).

`SelfPlayVecEnv` plays thousands of hands at once, on the game's tree or on OpenSpiel's states.
`SelfPlayEnv` plays a PettingZoo environment move by move: slow, readable, and with the same draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecNormalize

from algorithms.compiled.jit import draw
from algorithms.compiled.simulator import (
    Simulator,
    deal_of,
    first_hand,
    new_stream,
    playable_tree,
    running_sums,
)
from algorithms.games import KUHN, Game, TreeGame, as_game
from algorithms.policies import Policy
from algorithms.self_play.advantages import UNKNOWN_NODE, LastStep
from algorithms.self_play.states import StatePolicy, StateSimulator
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, Int64Array, UInt64Array
from algorithms.support.errors import MAX_SEED, UsageError, whole_number
from kuhn_bridge.errors import BridgeError, IllegalActionError, short_repr
from kuhn_bridge.kuhn_v0 import env as kuhn_env

NOBODY = -1
MAX_ENVS = 2**20
Backend: TypeAlias = Literal["tree", "states"]
GUARD = (
    "every decision of every seat is a step here, and SB3 alone would credit one seat with "
    "another's reward. To train, learn with callback=SelfPlay(); to measure a model, "
    "kb.Policy.from_sb3(model).nash_conv(); to play one seat, give the others to opponents=; to "
    "step through all seats yourself, make the environment with guarded=False"
)
# They change what the policy sees or is paid, so it would no longer be a policy of the game.
REFUSED_WRAPPERS: tuple[type, ...] = (VecNormalize, VecFrameStack)
REFUSED_GYM_WRAPPERS: tuple[type, ...] = (
    gymnasium.ObservationWrapper,
    gymnasium.RewardWrapper,
    gymnasium.wrappers.FrameStackObservation,
    gymnasium.wrappers.NormalizeObservation,
    gymnasium.wrappers.NormalizeReward,
)


class Guarded:
    """An environment that refuses to step unless self-play is learning."""

    guarded: bool
    _steps_allowed = False

    def allow_steps(self, *, allowed: bool) -> None:
        """Set whether self-play is learning."""
        self._steps_allowed = allowed

    def _require_steps_allowed(self) -> None:
        if self.guarded and not self._steps_allowed:
            raise UsageError(GUARD)

    def __getstate__(self) -> dict[str, Any]:
        """A copy is guarded as the original is, also one that is made while that learns."""
        return {**vars(self), "_steps_allowed": False}


# --- Many hands at once ---------------------------------------------------------------------------


class SelfPlayVecEnv(Guarded, VecEnv):
    """Plays many hands at once; a step is one decision in each of them.

    | space | meaning |
    |---|---|
    | observation | float32 `(n_envs, size)`: the information state tensor of the player to act |
    | action | the game's action IDs; `action_masks()` gives the legal ones, bool `(n_envs, A)` |
    | reward | the return of the player who acted if the hand ends, else 0 |

    If `game.appends_seat`, a one-hot of the seat follows the information state tensor. When a hand
    ends, the next one is dealt at once.

    Args:
        n_envs: number of hands that are played at once.
        game: a `Game` or its name; by default `kuhn`.
        seed: random seed of deals and draws.
        on: `"tree"` plays on the game's tree (compiled), `"states"` on OpenSpiel's states; by
            default the tree if the game fits one.
        opponents: policies that play some seats inside the environment, by seat: a `Policy`, a
            table `(I, A)` on the tree, or on states a function from observations `(n, size)` and
            masks `(n, A)` to probabilities `(n, A)`. If one seat is left, `SelfPlay()` is not
            needed.
        guarded: whether steps are refused unless `SelfPlay()` is learning; by default they are if
            more than one seat is left.
        infoset_numbers: whether observations are numbers of information sets, float32
            `(n_envs, 1)`, for `TableActorPolicy`; SB3's loops over dones and infos then do nothing
            (`LoopSkippingInfos`).
    """

    def __init__(  # noqa: PLR0913  # keyword options
        self,
        n_envs: int,
        game: Game | str = KUHN,
        *,
        seed: int = 0,
        on: Backend | None = None,
        opponents: Mapping[int, Any] | None = None,
        guarded: bool | None = None,
        infoset_numbers: bool = False,
    ) -> None:
        count = whole_number("n_envs", n_envs, least=1, most=MAX_ENVS)
        seed = whole_number("seed", seed, least=0, most=MAX_SEED)
        self.game = as_game(game)
        self.render_mode = None
        self._infoset_numbers = infoset_numbers
        self.on: Backend = on or self.game.backend
        played_inside = _require_opponents(self.game, opponents)
        one_seat_left = len(played_inside) == self.game.num_players - 1
        self.guarded = not one_seat_left if guarded is None else guarded
        self.simulator: Simulator | StateSimulator
        if self.on == "tree":
            tables = {seat: _as_table(self.game, seat, policy) for seat, policy in played_inside}
            self.simulator = Simulator(self.game.tree, count, seed=seed, opponents=tables)
            space = observation_space(self.game, infoset_numbers=infoset_numbers)
            self._inputs = _tree_inputs(self.game, infoset_numbers=infoset_numbers)
        elif self.on == "states" and not infoset_numbers:
            functions = {
                seat: _as_function(self.game, seat, policy) for seat, policy in played_inside
            }
            self.simulator = StateSimulator(self.game, count, seed=seed, opponents=functions)
            shape = self.simulator.observations.shape[1:]
            space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        else:
            raise UsageError(
                f"on={on!r}, infoset_numbers={infoset_numbers}: want 'tree', or 'states' with "
                "infoset_numbers=False"
            )
        super().__init__(count, space, spaces.Discrete(self.game.num_actions))
        self._indices = np.arange(count)
        self._actions = np.zeros(count, np.int64)
        self._acted_at = np.full(count, UNKNOWN_NODE, np.int32)
        self.get_state = self.simulator.get_state
        self.set_state = self.simulator.set_state

    def action_masks(self) -> BoolArray:
        """The legal actions in every hand: bool `(n_envs, A)`."""
        hands = self.simulator
        if isinstance(hands, StateSimulator):
            return np.asarray(hands.masks)
        return np.asarray(hands.tree.legal[hands.infosets])

    def observe(self) -> Float32Array:
        """The observation of the player to act in every hand: `(n_envs, size)`."""
        return self._observations()

    def last_step(self) -> LastStep:
        """The seats that acted in the last step, its results, and the seats to act next."""
        hands = self.simulator
        return LastStep(
            acted=hands.acted,
            returns=hands.returns,
            ended=hands.ended,
            seats=hands.seats,
            nodes=self._acted_at,
        )

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Restart the draws."""
        if seed is not None:
            self.simulator.seed(seed)
        return [seed] * self.num_envs

    def reset(self) -> Float32Array:
        """Deal all hands anew: observations `(n_envs, size)`."""
        self.simulator.deal()
        return self._observations()

    def step_async(self, actions: Int64Array) -> None:
        """Store the actions."""
        self._actions = actions

    def step_wait(self) -> tuple[Float32Array, Float32Array, BoolArray, Any]:
        """Play the stored actions: observations, rewards, dones and infos."""
        self._require_steps_allowed()
        hands = self.simulator
        if isinstance(hands, Simulator):
            self._acted_at = hands.nodes
        hands.step(self._actions)
        rewards = hands.returns[self._indices, hands.acted]
        observations = self._observations()
        ended = hands.ended
        if self._infoset_numbers:
            return (
                observations,
                rewards,
                ended.view(LoopSkippingArray),
                LoopSkippingInfos(self.num_envs),
            )
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for index in np.flatnonzero(ended).tolist():
            infos[index]["terminal_observation"] = np.zeros(observations.shape[1:], np.float32)
        return observations, rewards, ended, infos

    def close(self) -> None:
        """No-op: no resources are open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The value of an attribute that all hands share, once per hand."""
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute for all hands."""
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """One result for all hands, e.g. one array of masks: thousands would be slow to stack."""
        return [getattr(self, method_name)(*args, **kwargs)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No hand is wrapped."""
        return [False] * self.num_envs

    def _observations(self) -> Float32Array:
        hands = self.simulator
        if isinstance(hands, StateSimulator):
            return np.asarray(hands.observations)
        # Indexing with the array takes up to five times as long as `take`.
        return np.asarray(self._inputs.take(hands.infosets, axis=0))


class LoopSkippingInfos(list[dict[str, Any]]):
    """n empty infos that a loop skips; indexing and `len` are as usual.

    After every step SB3 loops over `infos` and `dones`, for the statistics of a `Monitor` and for
    truncated episodes. There are neither here, and with thousands of hands the loops would take
    longer than the rest of a step.
    """

    def __init__(self, n_envs: int) -> None:
        super().__init__([{}] * n_envs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(())


class LoopSkippingArray(np.ndarray[Any, Any]):
    """An array that a loop skips, for the reason given in `LoopSkippingInfos`."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())


# --- Opponents inside the environment -------------------------------------------------------------


def _require_opponents(game: Game, opponents: Any) -> list[tuple[int, Any]]:
    """The seats that opponents play, with their policies; an error if no seat is left over."""
    if opponents is None:
        return []
    if not isinstance(opponents, Mapping):
        kind = type(opponents).__name__
        raise UsageError(f"opponents is a {kind}: want a map from seats to policies, e.g. {{1: p}}")
    seats = set(range(game.num_players))
    if not set(opponents) < seats:
        names = short_repr(sorted(opponents, key=repr))
        want = f"seats from 0 to {game.num_players - 1}, and one left over"
        raise UsageError(f"opponents={names}: want {want}")
    return list(opponents.items())


def _as_table(game: Game, seat: int, opponent: Any) -> Float64Array:
    """An opponent's policy on the game's tree: float64 `(I, A)`."""
    try:
        policy = opponent if isinstance(opponent, Policy) else Policy(game, opponent)
    except BridgeError as error:
        raise UsageError(f"opponents, seat {seat}: {error}") from None
    _require_same_game(game, seat, policy)
    return np.asarray(policy.table)


def _as_function(game: Game, seat: int, opponent: Any) -> StatePolicy:
    """An opponent's policy on OpenSpiel's states."""
    if isinstance(opponent, Policy):
        _require_same_game(game, seat, opponent)
        if isinstance(game, TreeGame):
            return by_observation(opponent)
        of_seat: Any = opponent.seat_policy
        played: StatePolicy = of_seat
        return played
    if callable(opponent):
        function: StatePolicy = opponent
        return function
    raise UsageError(
        f"opponents, seat {seat}: {short_repr(opponent)} is neither a Policy nor a function from "
        "observations and masks to probabilities"
    )


def _require_same_game(game: Game, seat: int, policy: Policy) -> None:
    if policy.game.name != game.name:
        raise UsageError(
            f"opponents, seat {seat}: a policy of {policy.game.name}, but the game is {game.name}"
        )


def by_observation(policy: Policy) -> StatePolicy:
    """A policy of a game with a tree, as a function of observations and masks.

    The row of an information set is looked up by what a network sees there.
    """
    game = policy.game
    infosets = infosets_by_observation(game.network_inputs())

    def probabilities(observations: Float32Array, masks: BoolArray) -> Float64Array:
        rows = [infosets[observation.tobytes()] for observation in observations + 0]
        return np.asarray(policy.table[rows])

    return probabilities


def infosets_by_observation(inputs: Float32Array) -> dict[bytes, int]:
    """The information set of each of a network's inputs `(I, size)`, by the bytes of the input.

    Adding 0 makes 0.0 of -0.0, whose bytes differ; observations that are looked up need it too.
    """
    return {observation.tobytes(): infoset for infoset, observation in enumerate(inputs + 0)}


# --- One hand at a time ---------------------------------------------------------------------------


class LegalActions(spaces.Discrete):
    """An environment's action IDs; `sample` draws a legal one. Pickled as a plain `Discrete`."""

    def __init__(self, env: SelfPlayEnv) -> None:
        super().__init__(env.game.num_actions)
        self._env = env

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """A legal action, unless `mask` or `probability` asks for something else."""
        if mask is None and probability is None:
            mask = self._env.action_masks().astype(np.int8)
        return super().sample(mask, probability)

    def __reduce__(self) -> tuple[type[spaces.Discrete], tuple[int]]:
        return spaces.Discrete, (int(self.n),)


class SelfPlayEnv(Guarded, gymnasium.Env[Float32Array, np.int64]):
    """The readable reference: one hand at a time in a PettingZoo environment, for all seats.

    It has the spaces of `SelfPlayVecEnv`, and plays the same hands as an environment of one hand
    with the same seed. The game needs a tree.

    Args:
        game: a `Game` or its name; by default `kuhn`.
        seed: random seed of deals and draws.
        guarded: whether steps are refused unless `SelfPlay()` is learning; by default they are if
            the game has more than one player.
        infoset_numbers: whether observations are numbers of information sets, float32 `(1,)`.
    """

    _hand: int  # the number of the hand, which determines its deal

    def __init__(
        self,
        game: Game | str = KUHN,
        *,
        seed: int = 0,
        guarded: bool | None = None,
        infoset_numbers: bool = False,
    ) -> None:
        self.game = as_game(game)
        self.on: Backend = "tree"
        self.guarded = self.game.num_players > 1 if guarded is None else guarded
        self.observation_space: Any = observation_space(self.game, infoset_numbers=infoset_numbers)
        self.action_space = LegalActions(self)
        self._inputs = _tree_inputs(self.game, infoset_numbers=infoset_numbers)
        self._playable_tree = playable_tree(self.game.tree, {})
        self._infosets = {
            (owner, observation.tobytes()): infoset
            for infoset, (owner, observation) in enumerate(
                zip(self.game.tree.owner.tolist(), self.game.observations, strict=True)
            )
        }
        seed = whole_number("seed", seed, least=0, most=MAX_SEED)
        self._table: _Table = _KuhnTable() if self.game.name == KUHN else _ShimmyTable(self.game)
        self._seed_draws(seed)
        self._stream_at_deal = int(self._stream[0])
        self._actions: list[int] = []
        self._acted = 0
        self._acted_at = UNKNOWN_NODE
        self._returns = [0.0] * self.game.num_players
        self._ended = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """Deal the next hand; `options={"hand": k}` deals hand k of the seed, from 0."""
        super().reset(seed=seed)
        if seed is not None:
            self._seed_draws(seed)
        chosen = (options or {}).get("hand")
        self._hand = self._hand + 1 if chosen is None else self._first_hand + chosen
        self._deal()
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """Play the decision of the player to act."""
        self._require_steps_allowed()
        if action not in np.flatnonzero(self.action_masks()):
            raise IllegalActionError(f"action {action} is illegal after {self._actions}")
        self._acted = self._table.actor()
        self._acted_at = self.game.tree.node_after(self._table.history())
        self._apply(int(action))
        self._ended = self._table.actor() == NOBODY
        self._returns = [0.0] * self.game.num_players
        if self._ended:
            self._returns = self._table.returns()
        reward = float(np.float32(self._returns[self._acted]))
        return self._observation(), reward, self._ended, False, {}

    def action_masks(self) -> BoolArray:
        """The legal actions: bool `(A,)`."""
        if self._table.actor() == NOBODY:
            return np.zeros(self.game.num_actions, np.bool_)
        return self._table.mask()

    def observe(self) -> Float32Array:
        """The observation of the player to act: `(1, size)`."""
        return self._observation()[np.newaxis]

    def last_step(self) -> LastStep:
        """The seat that acted in the last step, its result, and the seat to act next."""
        return LastStep(
            acted=np.array([self._acted], np.int8),
            returns=np.array([self._returns], np.float32),
            ended=np.array([self._ended]),
            seats=np.array([self._table.actor()], np.int8),
            nodes=np.array([self._acted_at], np.int32),
        )

    def get_state(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return {
            "hand": self._hand,
            "actions": [*self._actions],
            "stream_at_deal": self._stream_at_deal,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self._hand = state["hand"]
        self._stream[0] = state["stream_at_deal"]
        self._deal()
        for action in state["actions"]:  # replayed with the same draws of chance
            self._apply(action)

    def _seed_draws(self, seed: int) -> None:
        """Restart the draws, and number the hands as a `Simulator` with this seed does."""
        self._stream = new_stream(seed)
        self._first_hand = int(first_hand(seed))
        self._hand = self._first_hand - 1

    def _deal(self) -> None:
        """Deal the hand of this number."""
        self._actions = []
        self._stream_at_deal = int(self._stream[0])
        node = int(deal_of(self._playable_tree, np.uint64(self._hand % 2**64)))
        self._table.deal(self.game.tree.history(node), self._stream)

    def _apply(self, action: int) -> None:
        self._table.play(action)
        self._actions.append(action)

    def _observation(self) -> Float32Array:
        """The observation of the player to act; zeros after the end."""
        seat = self._table.actor()
        if seat == NOBODY:
            return np.zeros(self.observation_space.shape, np.float32)
        infoset = self._infosets[seat, self._table.observe(seat).tobytes()]
        return np.array(self._inputs[infoset])


class _Table(Protocol):
    """A PettingZoo environment with the deals and the draws of chance that it is given."""

    def deal(self, dealt: Sequence[int], stream: UInt64Array) -> None:
        """Start a hand with chance's first moves `dealt`; later ones are drawn from `stream`."""

    def play(self, action: int) -> None:
        """Play the action of the player to act."""

    def actor(self) -> int:
        """The player to act, or NOBODY at the end."""

    def mask(self) -> BoolArray:
        """The legal actions of the player to act: bool `(A,)`."""

    def observe(self, seat: int) -> Float32Array:
        """The observation of the player to act, without a one-hot of the seat: `(size,)`."""

    def returns(self) -> list[float]:
        """All players' returns at the end."""

    def history(self) -> Sequence[int]:
        """The action IDs of the hand so far, chance's included."""


class _KuhnTable:
    """The PettingZoo environment of Kuhn poker."""

    def __init__(self) -> None:
        self._env = kuhn_env()
        self._history: list[int] = []

    def deal(self, dealt: Sequence[int], stream: UInt64Array) -> None:
        self._history = [*dealt]
        self._env.reset(options={"cards": tuple(dealt)})

    def play(self, action: int) -> None:
        self._history.append(action)
        self._env.step(action)

    def actor(self) -> int:
        return _actor_of(self._env)

    def mask(self) -> BoolArray:
        return np.asarray(self._env.observe(self._env.agent_selection)["action_mask"], bool)

    def observe(self, seat: int) -> Float32Array:
        return np.asarray(self._env.observe(self._env.possible_agents[seat])["observation"])

    def returns(self) -> list[float]:
        return [float(reward) for reward in self._env.rewards.values()]

    def history(self) -> Sequence[int]:
        return self._history


class _ShimmyTable:
    """Shimmy's PettingZoo environment of an OpenSpiel game."""

    def __init__(self, game: Game) -> None:
        if game.pyspiel_game is None:
            raise UsageError(
                f"{game.name} is not a game of OpenSpiel, so it cannot be played in a PettingZoo "
                "environment; SelfPlayVecEnv plays it on its tree"
            )
        from kuhn_bridge.shimmy import WholeHands

        play_chance = self._play_chance

        class GivenChance(WholeHands):
            def _execute_chance_node(self) -> None:
                while self.game_state.is_chance_node():
                    play_chance(self.game_state)

        self._env: Any = GivenChance(env=game.pyspiel_game)
        self._dealt: Iterator[int] = iter(())
        self._stream: UInt64Array = np.zeros(1, np.uint64)  # the caller's, from the first deal on

    def deal(self, dealt: Sequence[int], stream: UInt64Array) -> None:
        self._dealt = iter(dealt)
        self._stream = stream
        self._env.reset()

    def play(self, action: int) -> None:
        self._env.step(action)

    def actor(self) -> int:
        return _actor_of(self._env)

    def mask(self) -> BoolArray:
        return np.asarray(self._env.infos[self._env.agent_selection]["action_mask"], bool)

    def observe(self, seat: int) -> Float32Array:
        # The wrapper itself returns the observation tensor if the game has one.
        return np.array(self._env.game_state.information_state_tensor(seat), np.float32)

    def returns(self) -> list[float]:
        return list(self._env.game_state.returns())

    def history(self) -> Sequence[int]:
        history: list[int] = self._env.game_state.history()
        return history

    def _play_chance(self, state: Any) -> None:
        """Apply chance's next move to an OpenSpiel state: first those dealt, then drawn ones."""
        outcome = next(self._dealt, None)
        if outcome is None:
            outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
            sums = running_sums([probabilities])[0]
            outcome = outcomes[int((sums <= draw(self._stream)).sum())]
        state.apply_action(int(outcome))


def _actor_of(env: Any) -> int:
    """The player to act in a PettingZoo environment, or NOBODY at the end."""
    if any(env.terminations.values()):
        return NOBODY
    return int(env.possible_agents.index(env.agent_selection))


# --- What learning needs of an environment, however it is wrapped ---------------------------------


def require_self_play(env: VecEnv) -> None:
    """Raise an error unless these are self-play environments whose observations are the game's."""
    if not env.has_attr("allow_steps"):
        raise UsageError("SelfPlay needs an environment of SelfPlayVecEnv or SelfPlayEnv")
    wrapped: Any = env
    while wrapped is not None:
        if isinstance(wrapped, REFUSED_WRAPPERS):
            raise _refused(type(wrapped).__name__)
        wrapped = getattr(wrapped, "venv", None)
    for kind in REFUSED_GYM_WRAPPERS:
        if any(env.env_is_wrapped(kind)):
            raise _refused(kind.__name__)


def _refused(name: str) -> UsageError:
    return UsageError(
        f"{name} changes observations or rewards, so what is learned would not be a policy of the "
        "game: leave it out; SelfPlay() scales rewards by itself"
    )


@contextmanager
def steps_allowed(env: VecEnv) -> Iterator[None]:
    """Let self-play environments be stepped inside the block, by a loop that separates seats."""
    env.env_method("allow_steps", allowed=True)
    try:
        yield
    finally:
        env.env_method("allow_steps", allowed=False)


def observations_of(env: VecEnv) -> Float32Array:
    """The observations of all hands of a self-play environment as they are now, wrapped or not."""
    return np.concatenate(env.env_method("observe"))


def last_step_of(env: VecEnv) -> LastStep:
    """The last step of all hands of a self-play environment, wrapped or not."""
    steps = env.env_method("last_step")
    if len(steps) == 1:
        first: LastStep = steps[0]
        return first
    return LastStep(*map(np.concatenate, zip(*steps, strict=True)))


def observation_space(game: Game, *, infoset_numbers: bool = False) -> spaces.Box:
    """The space of observations on a tree: a network's inputs, or numbers of information sets."""
    if infoset_numbers:
        return spaces.Box(0, len(game.tree.keys), (1,), np.float32)
    inputs = game.network_inputs()
    low = min(0.0, float(inputs.min()))
    high = max(1.0, float(inputs.max()))
    return spaces.Box(low, high, inputs.shape[1:], np.float32)


def _tree_inputs(game: Game, *, infoset_numbers: bool) -> Float32Array:
    """A network's inputs at each information set, or these sets' numbers: float32 `(I, size)`."""
    if infoset_numbers:
        return np.arange(len(game.tree.keys), dtype=np.float32)[:, None]
    return game.network_inputs()
