"""The PettingZoo adapter: Kuhn poker as an AEC environment.

`env()` needs none of PettingZoo's wrappers: the environment itself raises an error on a step before
`reset`, an illegal action or an action of a finished agent, and then stays as it was.
"""

import random
from collections.abc import Iterable
from typing import Any, ClassVar, Literal, SupportsIndex, TypeAlias, TypedDict, overload

import gymnasium
import numpy as np
import pettingzoo
from gymnasium import spaces

from kuhn_bridge.errors import BridgeError, HistoryError, IllegalActionError, SeatError, short_repr
from kuhn_bridge.rules import AGENTS, DEALS, Action, Card, as_deal, as_seed
from kuhn_bridge.state import MASKS, OBSERVATION_SIZE, OBSERVATIONS, Mask, Observation, State


class AgentInfo(TypedDict):
    """An agent's entry in `infos`: its mask, int8 `(3,)`."""

    action_mask: Mask


class AgentObservation(AgentInfo):
    """An agent's observation, float32 `(10,)`, and its mask."""

    observation: Observation


_SEATS = {"player_0": 0, "player_1": 1}
_Rest: TypeAlias = tuple[int, bool, bool, AgentInfo]


class KuhnEnv(pettingzoo.AECEnv[str, AgentObservation, int]):
    """One hand of two-player Kuhn poker per episode.

    Both players ante 1 chip and get one card of J, Q, K; player_0 acts first. There is one betting
    round with one bet of 1 chip and no raise.

    | | |
    |---|---|
    | agents | `player_0`, `player_1` |
    | action space | `Discrete(3)` |
    | observation space | `Dict` of the two below |
    | `"observation"` | `Box(0, 1, (10,), float32)` |
    | `"action_mask"` | `Box(0, 1, (3,), int8)` |
    | state space | `Box(0, 1, (13,), float32)`: both cards, history, agent to act |
    | rewards | net chips at the end of the hand, zero-sum |
    | render modes | `human`, `ansi` |

    ## Actions

    | ID | action | legal |
    |---|---|---|
    | 0 | check, or call a bet | always |
    | 1 | bet | unless facing a bet |
    | 2 | fold | facing a bet |

    `action_mask` is 1 for legal actions, and all zero for an agent that is not to act. An illegal
    action raises `IllegalActionError` and changes nothing.

    ## Observation

    | index | meaning |
    |---|---|
    | 0..2 | own card: J, Q, K |
    | 3..7 | history: none, check, bet, check-bet, finished |
    | 8..9 | agent to act: `player_0`, `player_1`; neither at the end |

    ## Rewards

    The loser pays the winner 1 chip after check-check or a fold and 2 after a called bet. A fold
    loses; otherwise the higher card wins.

    ## Starting state

    One of the six deals at random. `reset(seed=...)` restarts the stream of deals, and
    `reset(options={"cards": ("K", "J")})` fixes one deal.

    ## End of an episode

    Both agents terminate when the hand ends; nothing is truncated. Each then takes `step(None)`.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "kuhn_v0",
        "render_modes": ["human", "ansi"],
        "is_parallelizable": False,
        "render_fps": 1,
    }
    agent_selection: str

    def __init__(self, render_mode: str | None = None) -> None:
        modes = self.metadata["render_modes"]
        if render_mode not in (None, *modes):
            wrong = f"render_mode {short_repr(render_mode)} is unknown"
            raise BridgeError(f"{wrong}; use one of {modes} or None")
        super().__init__()
        self.render_mode = render_mode
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(0, 1, (OBSERVATION_SIZE,), np.float32),
                    "action_mask": spaces.Box(0, 1, (len(Action),), np.int8),
                }
            )
            for agent in AGENTS
        }
        self.action_spaces = {agent: spaces.Discrete(len(Action)) for agent in AGENTS}
        self.state_space = spaces.Box(0, 1, (len(Card) + OBSERVATION_SIZE,), np.float32)
        self._rng = random.Random()
        self._hand: State | None = None

    def observation_space(self, agent: str) -> spaces.Dict:
        """`{"observation": (10,), "action_mask": (3,)}`, both binary."""
        return self.observation_spaces[AGENTS[_seat(agent)]]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The three action IDs."""
        return self.action_spaces[AGENTS[_seat(agent)]]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal a hand.

        Args:
            seed: restarts the stream of deals.
            options: `{"cards": ("K", "J")}` fixes this deal, and draws nothing from the stream.
        """
        # Unknown options are ignored: PettingZoo's api_test gives one.
        fixed_deal = as_deal(options["cards"]) if options and "cards" in options else None
        if seed is not None:
            self._rng = random.Random(as_seed(seed))
        deal = fixed_deal or DEALS[int(self._rng.random() * len(DEALS))]
        hand = State.new(*deal)
        self.agents = list(AGENTS)
        self.rewards = {"player_0": 0, "player_1": 0}
        self._cumulative_rewards = {"player_0": 0, "player_1": 0}
        self.terminations = {"player_0": False, "player_1": False}
        self.truncations = {"player_0": False, "player_1": False}
        self._turn(hand)

    def step(self, action: SupportsIndex | None) -> None:
        """Play `action` for `agent_selection`; `None` for a finished agent."""
        hand = self._dealt()
        if hand.is_terminal:
            if not self.agents:
                raise HistoryError("the hand is over and both agents have left; call reset()")
            if action is not None:
                wrong = f"illegal action {short_repr(action)} {hand.describe()}"
                raise IllegalActionError(f"{wrong}: the hand is over, step(None)")
            agent = self.agent_selection
            self.agents.remove(agent)
            for entries in (self.terminations, self.truncations, self._cumulative_rewards):
                del entries[agent]
            del self.infos[agent]
            self.rewards = dict.fromkeys(self.agents, 0)
            self.agent_selection = AGENTS[1]
            return
        hand = hand.act(action)
        self._cumulative_rewards[self.agent_selection] = 0
        if hand.is_terminal:
            self.rewards["player_0"], self.rewards["player_1"] = hand.returns
            self._accumulate_rewards()
            self.terminations = {"player_0": True, "player_1": True}
        self._turn(hand)

    @overload
    def last(self, observe: Literal[True] = True) -> tuple[AgentObservation, *_Rest]: ...
    @overload
    def last(self, observe: bool) -> tuple[AgentObservation | None, *_Rest]: ...
    def last(self, observe: bool = True) -> tuple[AgentObservation | None, *_Rest]:
        """Observation, reward, termination, truncation and info of `agent_selection`."""
        if not self.agents:
            raise HistoryError("there is no agent; call reset()")
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def agent_iter(self, max_iter: int = 2**63) -> Iterable[str]:
        """The agents in turn; step once for each."""
        self._dealt()
        agents: Iterable[str] = super().agent_iter(max_iter)
        return agents

    def observe(self, agent: str) -> AgentObservation:
        """The observation of `agent` and its mask."""
        seat = _seat(agent)
        hand = self._dealt()
        return {
            "observation": OBSERVATIONS[hand.letters][hand.cards[seat]].copy(),
            "action_mask": MASKS[hand.letters][seat].copy(),
        }

    def state(self) -> Observation:
        """The whole state, for centralised training: float32 `(13,)`.

        0..2 player_0's card, 3..5 player_1's, then history and agent to act as in the observation.
        """
        hand = self._dealt()
        card0, card1 = hand.cards
        observation = OBSERVATIONS[hand.letters]
        return np.concatenate([observation[card0][: len(Card)], observation[card1]])

    def render(self) -> str | None:
        """Print the hand in `human` mode; return it as text in `ansi` mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs a render_mode: env(render_mode='ansi')")
            return None
        text = _as_text(self._dealt())
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def close(self) -> None:
        """No-op: no resources are open. PettingZoo's API test requires it beside `render`."""

    def _turn(self, hand: State) -> None:
        """Make `hand` the current state, and select the agent to act or, at the end, player_0."""
        self._hand = hand
        self.agent_selection = AGENTS[hand.actor or 0]
        mask0, mask1 = MASKS[hand.letters]
        self.infos: dict[str, AgentInfo] = {
            "player_0": {"action_mask": mask0.copy()},
            "player_1": {"action_mask": mask1.copy()},
        }
        if self.render_mode == "human":
            self.render()

    def _dealt(self) -> State:
        if self._hand is None:
            raise HistoryError("no hand is dealt yet; call reset() first")
        return self._hand


def _seat(agent: str) -> int:
    try:
        return _SEATS[agent]
    except (KeyError, TypeError):
        known = ", ".join(AGENTS)
        raise SeatError(f"{short_repr(agent)} is not an agent; the agents are {known}") from None


def env(render_mode: str | None = None) -> KuhnEnv:
    """The environment. It needs no wrappers, so `raw_env` is the same."""
    return KuhnEnv(render_mode)


raw_env = env
pettingzoo.register("aec", "kuhn_bridge/kuhn_v0", "kuhn_bridge.kuhn_v0:env")


def _as_text(hand: State) -> str:
    """Two lines: cards, pot and history; then the agent to act or the winner."""
    held = [f"{agent} [{card.name}]" for agent, card in zip(AGENTS, hand.cards, strict=True)]
    cards = "   ".join(held)
    pot = 2 + sum(word in {"bet", "call"} for word in hand.history)
    line = f"{cards}   pot {pot}   {', '.join(hand.history) or 'dealt'}"
    if hand.actor is not None:
        names = " or ".join(action.name for action in hand.legal_actions)
        return f"{line}\n{AGENTS[hand.actor]} to act: {names}"
    winner = int(hand.returns[1] > 0)
    return f"{line}\n{AGENTS[winner]} wins {hand.returns[winner]}"
