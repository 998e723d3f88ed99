"""Kuhn poker by other authors, right and wrong: what `parity.check --candidate` is given."""

import gymnasium
import numpy as np

from kuhn_bridge.kuhn_v0 import KuhnEnv
from kuhn_bridge.rules import DEALS


class Tutorial:
    """As in a popular tutorial: check-check pays 2."""

    def is_terminal(self, history):
        return history in ("pp", "bb", "bp", "pbp", "pbb")

    def get_current_player(self, history):
        return len(history) % 2

    def get_payoff(self, cards, history):
        if history[-2:] == "bp":
            return 1 if len(history) == 2 else -1
        return 2 if cards[0] > cards[1] else -2


def make_tutorial():
    return Tutorial()


class HistoryFirst(Tutorial):
    """Right, with the history before the cards."""

    def get_payoff(self, history, cards):
        if history == "pp":
            return 1 if cards[0] > cards[1] else -1
        return super().get_payoff(cards, history)


class OtherName(HistoryFirst):
    """Right, with another name for the cards."""

    def get_payoff(self, hole, history):
        return super().get_payoff(history, hole)


class Pair(HistoryFirst):
    """It pays both players."""

    def get_payoff(self, cards, history):
        return np.array([1, -1])


class Crashes(Tutorial):
    def get_payoff(self, cards, history):
        raise ZeroDivisionError("oops")


class OtherPlayer(OtherName):
    def get_current_player(self, history):
        return 1 - len(history) % 2


class FromOne(HistoryFirst):
    """Its cards are 1 to 3."""

    def get_payoff(self, cards, history):
        ranks = [{1: "J", 2: "Q", 3: "K"}[card] for card in cards]
        return super().get_payoff(history, ["JQK".index(rank) for rank in ranks])


class FromOneAndWrong(FromOne):
    """It pays 2 for check-check as well."""

    def get_payoff(self, cards, history):
        return super().get_payoff(cards, history) * (2 if history == "pp" else 1)


def shimmy():
    from shimmy import OpenSpielCompatibilityV0

    return OpenSpielCompatibilityV0(game_name="kuhn_poker")


ORDER = {"check": 3, "bet": 1, "call": 0, "fold": 2}  # four IDs in an arbitrary order


class FourActions(KuhnEnv):
    """Our environment with four action IDs."""

    def action_space(self, agent):
        return gymnasium.spaces.Discrete(4)

    def _words(self):
        return ("call", "fold") if "bet" in self._hand.history else ("check", "bet")

    def observe(self, agent):
        mask = np.zeros(4, np.int8)
        if not self._hand.is_terminal and agent == self.agent_selection:
            mask[[ORDER[word] for word in self._words()]] = 1
        return {**super().observe(agent), "action_mask": mask}

    def step(self, action):
        if action is not None:
            word = next(w for w in self._words() if ORDER[w] == action)
            action = {"check": 0, "bet": 1, "call": 0, "fold": 2}[word]
        super().step(action)


class Maskless(KuhnEnv):
    """It has no masks: illegal actions raise."""

    def observe(self, agent):
        return super().observe(agent)["observation"]

    def last(self, observe=True):
        return *super().last(observe)[:4], {}


class Peeking(KuhnEnv):
    """Both players observe both cards."""

    def observe(self, agent):
        seen = super().observe(agent)
        return {**seen, "observation": np.concatenate([seen["observation"], self.state()])}


class Leaking(KuhnEnv):
    """After the first move both cards are observed."""

    def observe(self, agent):
        seen = super().observe(agent)
        if self._hand.history:
            seen["observation"][:3] += self.state()[:3] + self.state()[3:6]
        return seen


class Generous(KuhnEnv):
    """A fold pays nothing."""

    def step(self, action):
        super().step(action)
        if self._hand.is_terminal and "fold" in self._hand.history and action is not None:
            self._cumulative_rewards = dict.fromkeys(self.agents, 0)


class Broken(KuhnEnv):
    """It cannot be reset."""

    def reset(self, seed=None, options=None):
        raise OSError("no cards left")


class FoldAtFirst(KuhnEnv):
    """Its mask allows an action that it refuses."""

    def observe(self, agent):
        seen = super().observe(agent)
        if not self._hand.history:
            seen["action_mask"][:] = 1
        return seen


class NoCheck(KuhnEnv):
    """Its mask allows a check, which raises."""

    def step(self, action):
        if action == 0:
            raise ValueError("no checks here")
        super().step(action)


class Loaded(KuhnEnv):
    """King against jack is too likely."""

    def reset(self, seed=None, options=None):
        super().reset(seed=seed, options={"cards": ("K", "J")} if seed and seed % 2 else options)


class FewerDeals(KuhnEnv):
    """One deal never comes up."""

    def reset(self, seed=None, options=None):
        super().reset(seed=seed, options={"cards": DEALS[1 + seed % 5]})


class Twins(KuhnEnv):
    """Player_1 sometimes observes player_0's card as its own."""

    def reset(self, seed=None, options=None):
        self.twins = bool(seed % 2)
        super().reset(seed=seed, options=options)

    def observe(self, agent):
        seen = super().observe(agent)
        if self.twins:
            seen["observation"][:3] = self.state()[:3]
        return seen


class Immortal(KuhnEnv):
    """Finished agents never leave."""

    def step(self, action):
        if action is not None:
            super().step(action)


class Endless(KuhnEnv):
    """The hand never ends."""

    def observe(self, agent):
        return {**super().observe(agent), "action_mask": np.ones(3, np.int8)}

    def step(self, action):
        one, other = self.possible_agents
        self.agent_selection = other if self.agent_selection == one else one


class Three(KuhnEnv):
    """It has a third player."""

    def __init__(self):
        super().__init__()
        self.possible_agents = [*self.possible_agents, "player_2"]


class Forgetful(KuhnEnv):
    """It ignores the seed."""

    def reset(self, seed=None, options=None):
        super().reset(options=options)
