"""Self-play environments for Stable-Baselines3: every decision of every seat is a step.

One policy plays all seats. In a step the player to act decides, and the next observation is that of
the next player to act. SB3's own rollout buffer would treat a slot as one agent and carry credit
from one seat to another with the wrong sign, so these environments refuse to step without
`SelfPlay()`, which replaces the buffer with `SeatRolloutBuffer`.

`SelfPlayVecEnv` plays thousands of hands at once, on the game's tree or on OpenSpiel's states.
`SelfPlayEnv` plays the PettingZoo face move by move: slow, readable, and with the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from algorithms.compiled.jit import draw
from algorithms.compiled.simulator import Simulator, deal_of, new_stream, rules_of, running_sums
from algorithms.games import KUHN, Game, as_game
from algorithms.self_play.advantages import LastStep
from algorithms.self_play.states import StateSimulator
from algorithms.support.arrays import BoolArray, Float32Array, Int64Array
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import IllegalActionError
from kuhn_bridge.kuhn_v0 import env as kuhn_env

NOBODY = -1
Backend: TypeAlias = Literal["tree", "states"]
CREDIT = (
    "every decision of every seat is a step here, so SB3's own rollout buffer would credit one "
    "seat with another's reward: learn with callback=SelfPlay(). To step the environment yourself, "
    "set its per_seat_credit to True"
)


class SelfPlayVecEnv(VecEnv):
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
        opponents: policies that play some seats inside the environment. On the tree a policy is a
            table `(I, A)`; on states a function from observations `(n, size)` and masks `(n, A)` to
            probabilities `(n, A)`. `SelfPlay()` is not needed if one seat is left.
        numbered: whether observations are numbers of information sets, float32 `(n_envs, 1)`, for
            `InfosetPolicy`; SB3's loops over `dones` and infos then do nothing (`UnloopedInfos`).
    """

    def __init__(  # noqa: PLR0913  # keyword options
        self,
        n_envs: int,
        game: Game | str = KUHN,
        *,
        seed: int = 0,
        on: Backend | None = None,
        opponents: Mapping[int, Any] | None = None,
        numbered: bool = False,
    ) -> None:
        self.game, self._numbered, self.render_mode = as_game(game), numbered, None
        self.on: Backend = on or ("tree" if self.game.fits_tree else "states")
        self.per_seat_credit = _one_seat_left(self.game, opponents)
        self.simulator: Any
        if self.on == "tree":
            self.simulator = Simulator(self.game.tree, n_envs, seed=seed, opponents=opponents)
            space = observation_space(self.game, numbered=numbered)
            self._inputs = _tree_inputs(self.game, numbered=numbered)
        elif self.on == "states" and not numbered:
            self.simulator = StateSimulator(self.game, n_envs, seed=seed, opponents=opponents)
            shape = self.simulator.observations.shape[1:]
            space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        else:
            raise UsageError(
                f"on={on!r}, numbered={numbered}: want 'tree', or 'states' with numbered=False"
            )
        super().__init__(n_envs, space, spaces.Discrete(self.game.num_actions))
        self._slots, self._actions = np.arange(n_envs), np.zeros(n_envs, np.int64)
        self.get_state, self.set_state = self.simulator.get_state, self.simulator.set_state
        end = {"terminal_observation": np.zeros(space.shape, np.float32)}
        self._infos = np.array([{}, end], object)  # slots share these, since SB3 only reads them

    def action_masks(self) -> BoolArray:
        """The legal actions of every slot: bool `(n_envs, A)`."""
        hands = self.simulator
        return np.asarray(hands.masks if self.on == "states" else hands.tree.legal[hands.infosets])

    def last_step(self) -> LastStep:
        """The seats that acted in the last step, its results, and the seats to act next."""
        hands = self.simulator
        return LastStep(hands.acted, hands.returns, hands.ended, hands.seats)

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
        """Store every slot's action."""
        self._actions = actions

    def step_wait(self) -> tuple[Float32Array, Float32Array, BoolArray, Any]:
        """Play the stored actions: observations, rewards, dones and infos."""
        if not self.per_seat_credit:
            raise UsageError(CREDIT)
        hands = self.simulator
        hands.step(self._actions)
        rewards = hands.returns[self._slots, hands.acted]
        observations, ended = self._observations(), hands.ended
        if self._numbered:
            return observations, rewards, ended.view(UnloopedArray), UnloopedInfos(self.num_envs)
        return observations, rewards, ended, self._infos[ended.astype(np.intp)].tolist()

    def close(self) -> None:
        """No-op: no resources are open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The value of an attribute that all slots share, once per slot."""
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute for all slots."""
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """One result for all slots, e.g. one array of masks: thousands would be slow to stack."""
        return [getattr(self, method_name)(*args, **kwargs)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No slot is wrapped."""
        return [False] * self.num_envs

    def _observations(self) -> Float32Array:
        hands = self.simulator
        if self.on == "states":
            return np.asarray(hands.observations)
        # Indexing with the array takes up to five times as long as `take`.
        return np.asarray(self._inputs.take(hands.infosets, axis=0))


class UnloopedInfos(list[dict[str, Any]]):
    """n empty infos that a loop skips; indexing and `len` are as usual.

    After every step SB3 loops over `infos` and `dones`, for the statistics of a `Monitor` and for
    truncated episodes. There are neither here, and with thousands of slots the loops would take
    longer than the rest of a step.
    """

    def __init__(self, n_envs: int) -> None:
        super().__init__([{}] * n_envs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(())


class UnloopedArray(np.ndarray[Any, Any]):
    """An array that a loop skips, for the reason given in `UnloopedInfos`."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())


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


class SelfPlayEnv(gymnasium.Env[Float32Array, np.int64]):
    """The readable reference: one hand at a time on the PettingZoo face, with all seats' decisions.

    It has the spaces of `SelfPlayVecEnv`, and plays the same hands as one slot of that environment
    with the same seed. The game needs a tree. With `numbered`, observations are numbers of
    information sets, float32 `(1,)`.
    """

    def __init__(self, game: Game | str = KUHN, *, seed: int = 0, numbered: bool = False) -> None:
        self.game, self.on = as_game(game), "tree"
        self.per_seat_credit = _one_seat_left(self.game, None)
        self.observation_space: Any = observation_space(self.game, numbered=numbered)
        self.action_space = LegalActions(self)
        self._inputs = _tree_inputs(self.game, numbered=numbered)
        self._rules, self._is_kuhn = rules_of(self.game.tree, {}), self.game.name == KUHN
        keys = zip(self.game.tree.owner.tolist(), self.game.observations, strict=True)
        self._infosets = {(owner, seen.tobytes()): i for i, (owner, seen) in enumerate(keys)}
        self._env = kuhn_env() if self._is_kuhn else _shimmy_env(self.game, self._play_chance)
        self._stream, self._hand, self._actions = new_stream(seed), -1, list[int]()
        self._stream_at_deal, self._dealt = int(self._stream[0]), iter([0])
        self._acted, self._returns, self._ended = 0, [0.0] * self.game.num_players, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """Deal the next hand; `options={"hand": k}` deals hand k."""
        super().reset(seed=seed)
        if seed is not None:
            self._stream, self._hand = new_stream(seed), -1
        self._hand = (options or {}).get("hand", self._hand + 1)
        self._deal()
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """Play the decision of the player to act."""
        if not self.per_seat_credit:
            raise UsageError(CREDIT)
        if action not in np.flatnonzero(self.action_masks()):
            raise IllegalActionError(f"action {action} is illegal after {self._actions}")
        self._acted = self._actor()
        self._apply(int(action))
        self._ended = self._actor() == NOBODY
        self._returns = [0.0] * self.game.num_players
        if self._ended:
            env = self._env
            self._returns = [*env.rewards.values()] if self._is_kuhn else env.game_state.returns()
        reward = float(np.float32(self._returns[self._acted]))
        return self._observation(), reward, self._ended, False, {}

    def action_masks(self) -> BoolArray:
        """The legal actions: bool `(A,)`."""
        if self._actor() == NOBODY:
            return np.zeros(self.game.num_actions, np.bool_)
        agent = self._env.agent_selection
        holder = self._env.observe(agent) if self._is_kuhn else self._env.infos[agent]
        return np.asarray(holder["action_mask"], bool)

    def last_step(self) -> LastStep:
        """The seat that acted in the last step, its result, and the seat to act next."""
        return LastStep(
            np.array([self._acted], np.int8),
            np.array([self._returns], np.float32),
            np.array([self._ended]),
            np.array([self._actor()], np.int8),
        )

    def get_state(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        stream = self._stream_at_deal
        return {"hand": self._hand, "actions": [*self._actions], "stream_at_deal": stream}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self._hand = state["hand"]
        self._stream[0] = state["stream_at_deal"]
        self._deal()
        for action in state["actions"]:  # replayed with the same draws of chance
            self._apply(action)

    def _deal(self) -> None:
        self._actions, self._stream_at_deal = [], int(self._stream[0])
        dealt = self.game.tree.history(int(deal_of(self._rules, np.uint64(self._hand))))
        self._dealt = iter(dealt)
        self._env.reset(options={"cards": tuple(dealt)} if self._is_kuhn else None)

    def _apply(self, action: int) -> None:
        self._env.step(action)
        self._actions.append(action)

    def _play_chance(self, state: Any) -> None:
        """Apply chance's next move to an OpenSpiel state: first those dealt, then drawn ones."""
        outcome = next(self._dealt, None)
        if outcome is None:
            outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
            sums = running_sums([probabilities])[0]
            outcome = outcomes[int((sums <= draw(self._stream)).sum())]
        state.apply_action(int(outcome))

    def _actor(self) -> int:
        """The player to act, or NOBODY at the end."""
        over = any(self._env.terminations.values())
        return NOBODY if over else int(self._env.possible_agents.index(self._env.agent_selection))

    def _observation(self) -> Float32Array:
        """The observation of the player to act; zeros after the end."""
        seat = self._actor()
        if seat == NOBODY:
            return np.zeros(self.observation_space.shape, np.float32)
        if self._is_kuhn:
            observed = self._env.observe(self._env.agent_selection)["observation"]
        else:  # the wrapper itself returns the observation tensor if the game has one
            observed = np.array(self._env.game_state.information_state_tensor(seat), np.float32)
        infoset = self._infosets[seat, observed.tobytes()]
        return np.array(self._inputs[infoset])


def _shimmy_env(game: Game, play_chance: Callable[[Any], None]) -> Any:
    """Shimmy's wrapper of an OpenSpiel game, with given chance moves."""
    from kuhn_bridge.shimmy import WholeHands

    class GivenChance(WholeHands):
        def _execute_chance_node(self) -> None:
            while self.game_state.is_chance_node():
                play_chance(self.game_state)

    return GivenChance(env=game.origin)


def last_step_of(env: VecEnv) -> LastStep:
    """The last step of all slots of a self-play environment, wrapped or not."""
    steps = env.env_method("last_step")
    return steps[0] if len(steps) == 1 else LastStep(*map(np.concatenate, zip(*steps, strict=True)))


def observation_space(game: Game, *, numbered: bool = False) -> spaces.Box:
    """The space of observations on a tree: a network's inputs, or numbers of information sets."""
    if numbered:
        return spaces.Box(0, len(game.tree.keys), (1,), np.float32)
    inputs = game.network_inputs()
    low, high = min(0.0, float(inputs.min())), max(1.0, float(inputs.max()))
    return spaces.Box(low, high, inputs.shape[1:], np.float32)


def _tree_inputs(game: Game, *, numbered: bool) -> Float32Array:
    """A network's inputs at each information set, or these sets' numbers: float32 `(I, size)`."""
    numbers = np.arange(len(game.tree.keys), dtype=np.float32)[:, None]
    return numbers if numbered else game.network_inputs()


def _one_seat_left(game: Game, opponents: Mapping[int, Any] | None) -> bool:
    """Whether one seat is left, so credit cannot cross seats; an error if seats are wrong."""
    taken = set(opponents or ())
    if not taken < set(range(game.num_players)):
        seats = f"0 to {game.num_players - 1}"
        raise UsageError(f"opponents={sorted(taken)}: want seats from {seats}, and one left over")
    return len(taken) == game.num_players - 1
