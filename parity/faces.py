"""The checks of the faces: the OpenSpiel game, the PettingZoo environment, Shimmy, the page."""

import contextlib
import io
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from kuhn_bridge import kuhn_v0
from kuhn_bridge.bridge import letters_to_actions
from kuhn_bridge.encoding import one_hot
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import AGENTS, DEALS, PLAYERS, Action
from kuhn_bridge.state import State, nodes
from parity.registry import KnownFault, Settings, Skipped, Tally, check
from parity.sides import (
    OURS,
    PASS_BET,
    Deal,
    Side,
    aec,
    aec_reader,
    compare,
    compare_information_states,
    hand,
    openspiel,
    reference,
)

GROUP = "faces"
EnvFactory: TypeAlias = Callable[[], Any]


def our_aec(make_env: EnvFactory = kuhn_v0.env) -> Side:
    """The PettingZoo face with fixed deals."""
    env = make_env()

    def reset(deal: Deal) -> Any:
        env.reset(options={"cards": deal})
        return env

    return aec(aec_reader(reset), {deal: deal for deal in DEALS}, OURS)


def shimmy_aec(make_env: EnvFactory) -> Side:
    """A Shimmy wrapper of `kuhn_poker`, with a seed for each deal."""
    env = make_env()

    def reset(seed: int) -> Any:
        env.reset(seed=seed)
        return env

    seeds = {tuple(reset(seed).game_state.history()): seed for seed in range(200)}
    return aec(aec_reader(reset), seeds, PASS_BET)


def shimmed() -> Any:
    """Shimmy's wrapper of `kuhn_poker` with our shim."""
    from kuhn_bridge.shimmy import WholeHands

    return WholeHands(game_name="kuhn_poker")


def upstream() -> Any:
    """Shimmy's wrapper of `kuhn_poker` without our shim."""
    from shimmy import OpenSpielCompatibilityV0

    return OpenSpielCompatibilityV0(game_name="kuhn_poker")


@check("openspiel-face", GROUP, "every node of python_kuhn_bridge against kuhn_poker")
def check_openspiel_face(
    tally: Tally, settings: Settings, *, game: pyspiel.Game | None = None
) -> None:
    """The registered game, its information states and its tensors."""
    from kuhn_bridge.openspiel import SHORT_NAME

    game = game or pyspiel.load_game(SHORT_NAME)
    ours = openspiel(game, OURS)
    compare(ours, reference(), tally)
    compare_information_states(ours, reference(), tally)
    texts: dict[tuple[int, int, str], str] = {}
    for state in nodes():
        theirs = game.new_initial_state()
        for action in (*state.cards, *letters_to_actions(state.letters)):
            theirs.apply_action(action)
        for seat in PLAYERS:
            where = f"{hand(state.cards, state.letters)}, {AGENTS[seat]}"
            tensor = theirs.observation_tensor(seat)
            tally.same(where, "observes {}", tensor, state.observe(seat).tolist())
            phrase = f"has the tensor {{}} at {theirs.information_state_string(seat)!r}"
            tensor = theirs.information_state_tensor(seat)
            tally.same(where, phrase, tensor, _information_state_tensor(state, seat))
            text = theirs.observation_string(seat)
            same = texts.setdefault((seat, state.cards[seat], state.letters), text) == text
            tally.holds(where, "its text is the same for each card of the other", same)


def _information_state_tensor(state: State, seat: int) -> list[float]:
    """Own card, then a one-hot of each of up to three moves: 12 numbers."""
    moves = [one_hot(action, len(Action)) for action in letters_to_actions(state.letters)]
    tensor: list[float] = np.concatenate([state.observe(seat)[:3], *moves, np.zeros(9)]).tolist()
    return tensor[:12]


@check("pettingzoo-api", GROUP, "PettingZoo's own api_test, several hands long")
def check_pettingzoo_api(
    tally: Tally, settings: Settings, *, make_env: EnvFactory = kuhn_v0.env
) -> None:
    """PettingZoo's test of the AEC face."""
    from pettingzoo.test import api_test

    tally.theirs = "a correct environment"
    for number in range(5 if settings.quick else 20):
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # it warns about dict observations
            try:
                api_test(make_env(), num_cycles=100)
                fault = ""
            except AssertionError as error:
                fault = str(error)
        tally.same(f"api_test, run {number + 1}", "fails with {!r}", fault, "")


@check("pettingzoo", GROUP, "every node of the AEC face, and the steps of finished agents")
def check_pettingzoo(
    tally: Tally, settings: Settings, *, make_env: EnvFactory = kuhn_v0.env
) -> None:
    """Turns, masks and rewards as `last()` gives them to each agent."""
    compare(our_aec(make_env), reference(), tally)


@check("pettingzoo-observations", GROUP, "observations, masks and infos of both agents, every node")
def check_pettingzoo_observations(
    tally: Tally, settings: Settings, *, make_env: EnvFactory = kuhn_v0.env
) -> None:
    """Also that illegal actions change nothing and that all deals are equally likely."""
    tally.theirs = "the core"
    env = make_env()
    for state in nodes():
        env.reset(options={"cards": state.cards})
        for action in letters_to_actions(state.letters):
            env.step(action)
        where = hand(state.cards, state.letters)
        whole = np.concatenate([state.observe(0)[:3], state.observe(1)[:3], state.observe(0)[3:]])
        for illegal in set(Action) - set(state.legal_actions):
            tally.holds(where, f"{illegal.name} is refused", _is_refused(env, illegal))
        tally.same(where, "has state {}", env.state().tolist(), whole.tolist())
        for seat, agent in enumerate(AGENTS):
            spot, mask = f"{where}, {agent}", state.mask(seat).tolist()
            right = {"observation": state.observe(seat).tolist(), "action_mask": mask}
            tally.same(spot, "observes {}", _as_lists(env.observe(agent)), right)
            tally.same(spot, "has info {}", _as_lists(env.infos[agent]), {"action_mask": mask})
    deals = Counter(_deal_of(env, seed) for seed in range(600))
    for count in deals.values():
        tally.holds("600 seeds", f"a deal comes up about 100 times, not {count}", 50 < count < 150)
    tally.same("600 seeds", "deals {} pairs of cards", len(deals), len(DEALS))


def _is_refused(env: Any, action: Action) -> bool:
    """Whether an action raises our error and changes nothing."""
    before = env.state().tolist(), dict(env.rewards), env.agent_selection
    try:
        env.step(action)
    except BridgeError:
        return (env.state().tolist(), dict(env.rewards), env.agent_selection) == before
    return False


def _as_lists(arrays: Mapping[str, Any]) -> dict[str, list[float]]:
    return {key: value.tolist() for key, value in arrays.items()}


def _deal_of(env: Any, seed: int) -> tuple[float, ...]:
    env.reset(seed=seed)
    return tuple(env.state()[:6].tolist())


@check("shimmy", GROUP, "every node of Shimmy with our shim against the AEC face")
def check_shimmy(tally: Tally, settings: Settings, *, make_env: EnvFactory = shimmed) -> None:
    """Turns, legal moves and rewards, given the same deals and actions."""
    tally.theirs = "Shimmy"
    compare(our_aec(), shimmy_aec(make_env), tally)


@check("shimmy-upstream", GROUP, "Shimmy without our shim, to see whether its fault is fixed")
def check_shimmy_upstream(
    tally: Tally, settings: Settings, *, make_env: EnvFactory = upstream
) -> None:
    """A mismatch here is a fault of Shimmy, not ours."""
    found = Tally(ours="Shimmy")
    compare(shimmy_aec(make_env), reference(), found)
    tally.compared = found.compared
    fixed = "fixed upstream: kuhn_bridge.shimmy can be removed"
    raise KnownFault(found.cases[0] if found.wrong else fixed)


@check("engine.js", GROUP, "the browser's rules engine at all 58 nodes, under node")
def check_engine(tally: Tally, settings: Settings, *, vectors: str | None = None) -> None:
    """Phases, moves, returns, observations and masks of both agents."""
    from kuhn_bridge.web.check import report

    tally.ours, tally.theirs = "engine.js", "the core"
    try:
        found = report(vectors)
    except BridgeError as reason:
        raise Skipped(str(reason)) from None
    tally.compared += found["compared"] - len(found["mismatches"])
    for miss in found["mismatches"]:
        where = f"{miss['letters'] or 'the deal'} with cards {miss['cards']}"
        tally.same(where, f"has {miss['field']} {{}}", str(miss["engine"]), str(miss["core"]))
