"""The faces: the registered OpenSpiel game, the PettingZoo environment, Shimmy, the page."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyspiel

from kuhn_bridge import kuhn_v0
from kuhn_bridge.bridge import letters_to_actions
from kuhn_bridge.encoding import one_hot
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import AGENTS, DEALS, PLAYERS, Action
from kuhn_bridge.state import nodes
from parity.registry import KnownFault, Settings, Skipped, check
from parity.sides import (
    OURS,
    PASS_BET,
    Deal,
    Side,
    aec,
    compare,
    compare_knowledge,
    hand,
    openspiel,
    reference,
)
from parity.tally import Tally

GROUP = "faces"


def our_aec() -> Side:
    """The PettingZoo face with its deals fixed."""
    env = kuhn_v0.env()

    def reset(deal: Deal) -> Any:
        env.reset(options={"cards": deal})
        return env

    return aec(reset, OURS, name="the AEC face")


def shimmy_aec(factory: Callable[[], Any]) -> Side:
    """A Shimmy wrapper of `kuhn_poker`, dealt by finding a seed for each deal."""
    env, seeds = factory(), dict[Deal, int]()
    for seed in range(1000):
        env.reset(seed=seed)
        seeds.setdefault(tuple(env.game_state.history()), seed)
        if len(seeds) == len(DEALS):
            break

    def reset(deal: Deal) -> Any:
        env.reset(seed=seeds[deal])
        return env

    return aec(reset, PASS_BET, name="Shimmy")


@check("openspiel-face", GROUP, "every node of python_kuhn_bridge against kuhn_poker")
def check_openspiel_face(tally: Tally, settings: Settings) -> None:
    """The registered game, its information states and its tensors."""
    from kuhn_bridge.openspiel import SHORT_NAME

    game = pyspiel.load_game(SHORT_NAME)
    ours = openspiel(game, OURS)
    compare(ours, reference(), tally)
    compare_knowledge(ours, reference(), tally)
    told: dict[tuple[int, int, str], str] = {}
    for state in nodes():
        theirs = game.new_initial_state()
        for action in (*state.cards, *letters_to_actions(state.letters)):
            theirs.apply_action(action)
        for seat in PLAYERS:
            where = f"{hand(state.cards, state.letters)}, {AGENTS[seat]}"
            tensor = theirs.observation_tensor(seat)
            tally.same(where, "shows {}", tensor, state.observe(seat).tolist())
            name = theirs.information_state_string(seat)
            moves = [one_hot(a, len(Action)) for a in letters_to_actions(state.letters)]
            flat = np.concatenate([state.observe(seat)[:3], *moves, np.zeros(9)])[:12].tolist()
            tally.same(
                where, f"shows {{}} as {name!r}", theirs.information_state_tensor(seat), flat
            )
            text = theirs.observation_string(seat)
            same = told.setdefault((seat, state.cards[seat], state.letters), text) == text
            tally.holds(where, "its text is the same whatever the other card is", same)


@check("pettingzoo-api", GROUP, "PettingZoo's own api_test, several hands long")
def check_pettingzoo_api(tally: Tally, settings: Settings) -> None:
    """PettingZoo's opinion of the AEC face."""
    from pettingzoo.test import api_test

    tally.theirs = "a sound environment"
    for number in range(5 if settings.quick else 20):
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # it warns about dict observations of all but its own
            try:
                api_test(kuhn_v0.env(), num_cycles=100)
                fault = ""
            except AssertionError as error:
                fault = str(error)
        tally.same(f"api_test, run {number + 1}", "says {!r}", fault, "")


@check("pettingzoo", GROUP, "every deal x every action sequence of the AEC face, with dead steps")
def check_pettingzoo(tally: Tally, settings: Settings) -> None:
    """Turns, masks and rewards as `last()` tells them to each agent."""
    compare(our_aec(), reference(), tally)


@check("pettingzoo-sights", GROUP, "what both agents are shown and told at every node")
def check_pettingzoo_sights(tally: Tally, settings: Settings) -> None:
    """Observations, masks, infos and the state; illegal actions change nothing; deals are fair."""
    tally.theirs = "the core"
    env = kuhn_v0.env()
    for state in nodes():
        env.reset(options={"cards": state.cards})
        for action in letters_to_actions(state.letters):
            env.step(action)
        where = hand(state.cards, state.letters)
        whole = np.concatenate([state.observe(0)[:3], state.observe(1)[:3], state.observe(0)[3:]])
        for illegal in set(Action) - set(state.legal_actions):
            tally.holds(where, f"{illegal.name} is refused", _refused(env, illegal))
        tally.same(where, "has state {}", env.state().tolist(), whole.tolist())
        for seat, agent in enumerate(AGENTS):
            spot, mask = f"{where}, {agent}", state.mask(seat).tolist()
            right = {"observation": state.observe(seat).tolist(), "action_mask": mask}
            tally.same(spot, "shows {}", _listed(env.observe(agent)), right)
            tally.same(spot, "tells {}", _listed(env.infos[agent]), {"action_mask": mask})
    deals = Counter(_dealt(env, seed) for seed in range(600))
    for count in deals.values():
        tally.holds("600 seeds", f"a deal comes up about 100 times, not {count}", 50 < count < 150)
    tally.same("600 seeds", "deals {} pairs of cards", len(deals), len(DEALS))


def _refused(env: Any, action: Action) -> bool:
    """Whether an action raises our error and leaves the hand where it was."""
    before = env.state().tolist(), dict(env.rewards), env.agent_selection
    try:
        env.step(action)
    except BridgeError:
        return (env.state().tolist(), dict(env.rewards), env.agent_selection) == before
    return False


def _listed(arrays: Mapping[str, Any]) -> dict[str, list[float]]:
    return {key: value.tolist() for key, value in arrays.items()}


def _dealt(env: Any, seed: int) -> tuple[float, ...]:
    env.reset(seed=seed)
    return tuple(env.state()[:6].tolist())


@check("shimmy", GROUP, "Shimmy through our shim in lockstep with the AEC face")
def check_shimmy(tally: Tally, settings: Settings) -> None:
    """Same deal, same actions: same turns, legality and rewards."""
    from kuhn_bridge.shimmy import WholeHands

    tally.theirs = "Shimmy"
    compare(our_aec(), shimmy_aec(lambda: WholeHands(game_name="kuhn_poker")), tally)


@check("shimmy-upstream", GROUP, "Shimmy without the shim: an upstream fault that we watch")
def check_shimmy_upstream(tally: Tally, settings: Settings) -> None:
    """Unpatched Shimmy against OpenSpiel; that it differs is not our failure."""
    from shimmy import OpenSpielCompatibilityV0

    seen = Tally(ours="Shimmy")
    compare(shimmy_aec(lambda: OpenSpielCompatibilityV0(game_name="kuhn_poker")), reference(), seen)
    tally.compared = seen.compared
    raise KnownFault(seen.cases[0] if seen.wrong else "mended: kuhn_bridge.shimmy can go")


@check("engine.js", GROUP, "the browser's rules engine at all 58 nodes, under node")
def check_engine(tally: Tally, settings: Settings) -> None:
    """Phases, moves, returns, observations and masks of both agents."""
    from kuhn_bridge.web.check import report

    tally.ours, tally.theirs = "engine.js", "the core"
    try:
        found = report()
    except BridgeError as reason:
        raise Skipped(str(reason)) from None
    tally.compared += found["compared"] - len(found["mismatches"])
    for miss in found["mismatches"]:
        where = f"{miss['letters'] or 'the deal'} with cards {miss['cards']}"
        tally.same(where, f"has {miss['field']} {{}}", str(miss["engine"]), str(miss["core"]))
