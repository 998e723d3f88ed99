"""`parity.check --game` on native games: it passes, and each check fails on a planted error."""

import json
from dataclasses import replace

import numpy as np
import pytest

from algorithms.exact.phantom.rules import hex_board
from algorithms.games import load_game
from algorithms.games.phantom import Phantom
from parity import check, native
from parity.registry import NATIVE_CHECKS, Settings, run
from tests.planting import failures, rows_of

HEX = load_game("dark_hex(board_size=2)")
DICE = load_game("liars_dice(numdice=1,dice_sides=3)")
PTTT = "phantom_ttt"
NATIVE = {HEX: HEX.source.native(), DICE: DICE.source.native()}


@pytest.mark.parametrize(
    "name",
    [
        "dark_hex(board_size=2)",
        "dark_hex(board_size=2,gameversion=adh)",
        "liars_dice(numdice=1,dice_sides=3)",
        "liars_dice(numdice=2,dice_sides=2,bidding_rule=reset-quantity)",
        pytest.param("dark_hex(num_rows=3,num_cols=2,gameversion=adh)", marks=pytest.mark.slow),
        pytest.param("liars_dice(numdice=1,dice_sides=7)", marks=pytest.mark.slow),
        pytest.param(PTTT, marks=pytest.mark.slow),
    ],
)
def test_all_checks_pass(name):
    settings = Settings(quick=True, game=load_game(name))
    skipped = {"walk"} if "dice" in name else set()
    skipped |= set() if name == PTTT else {"published"}
    for row, item in NATIVE_CHECKS.items():
        result = run(item, settings)
        expected = "skipped" if row in skipped else "pass"
        assert result.status == expected, (row, result.tally.cases, result.note)


def with_native(game, broken):
    """The game with another native form."""
    return replace(game, source=replace(game.source, native=lambda: broken))


def with_methods(game, **methods):
    """The game with a native form of which some methods are wrong."""
    right = NATIVE[game]
    other = type("Other", (type(right),), methods)
    broken = other.__new__(other)
    vars(broken).update(vars(right))
    return with_native(game, broken)


def with_rules(game, rules):
    right = NATIVE[game]
    broken = object.__new__(type(right))
    vars(broken).update(vars(right) | {"rules": rules})
    return with_native(game, broken)


def nobody_wins(rules):
    return replace(rules, wins=np.zeros_like(rules.wins))


def other_observations(self, player, start, stop):
    seen = super(type(self), self).observations(player, start, stop)
    seen[:, 1] = 1 - seen[:, 1]
    return seen


def other_legal(self, player, start, stop):
    legal = super(type(self), self).legal(player, start, stop)
    legal[:, -1] = True
    return legal


def one_infoset_too_far(self, state, player):
    return super(type(self), self).infoset_of(state, player) + 1


def same_infoset(self, state, player):
    return super(type(self), self).infoset_of(state, player) // 2


DICE_RULES = NATIVE[DICE].rules
WRONG_GAMES = [
    ("rules", with_rules(HEX, hex_board(2, 2, abrupt=True)), "after [0, 0]: ours lets 0 act"),
    ("rules", with_rules(HEX, nobody_wins(NATIVE[HEX].rules)), "after [0, 1, 2]: ours lets 1 act"),
    ("rules", with_rules(HEX, hex_board(4, 1)), "after [0, 1]: ours lets -4 act"),
    ("rules", with_rules(DICE, DICE_RULES._replace(matches=DICE_RULES.matches * 0)), "ours pays"),
    ("rules", with_rules(DICE, DICE_RULES._replace(quantity=DICE_RULES.quantity + 1)), "ours pays"),
    ("tensors", with_methods(HEX, observations=other_observations), "ours observes ["),
    ("tensors", with_methods(DICE, observations=other_observations), "ours observes ["),
    ("masks", with_methods(HEX, legal=other_legal), "[0, 1, 2, 3], OpenSpiel allows [0, 1, 2]"),
    ("masks", with_methods(DICE, legal=other_legal), "player 0 after [0, 0]: ours allows"),
    ("infosets", with_methods(HEX, infoset_of=one_infoset_too_far), "is below 17 does not hold"),
    ("infosets", with_methods(HEX, infoset_of=same_infoset), "has 70 information sets"),
    ("infosets", with_methods(DICE, infoset_of=same_infoset), "of player 0 is"),
]


@pytest.mark.parametrize(("row", "game", "text"), WRONG_GAMES)
def test_an_error_in_a_native_game_is_described(row, game, text):
    assert any(text in case for case in failures(row, {}, game=game))


def measured(**changes):
    """A measure of which some attributes are wrong, given the right ones."""

    def measure(game, tables):
        right = game.measure(tables)
        wrong = {name: change(getattr(right, name)) for name, change in changes.items()}
        if "best_responses" in wrong:
            responses = wrong.pop("best_responses")
            wrong["compute_best_responses"] = lambda: responses
        return replace(right, **wrong)

    return {"measure": measure}


def slightly_more(numbers):
    return tuple(number + 1e-9 for number in numbers)


def last_actions(responses):
    """The highest legal action is rarely the best one."""
    return tuple(np.full_like(actions, 3) for actions in responses)


PLANTED = [
    ("measure", measured(values=slightly_more), "random policy 0: ours wins"),
    ("measure", measured(best_values=slightly_more), "ours player 0's best value is"),
    ("measure", measured(best_responses=last_actions), "'s best response wins"),
    ("walk", measured(values=slightly_more), "random policy 0: ours wins"),
    ("walk", measured(best_responses=last_actions), "'s best response wins"),
]


@pytest.mark.parametrize(("row", "subject", "text"), PLANTED)
def test_a_planted_error_is_described(row, subject, text):
    assert any(text in case for case in failures(row, subject, game=HEX))


@pytest.mark.parametrize("change", [1e-6, -1e-6])
def test_an_error_in_the_sixth_digit_is_described(change, monkeypatch):
    exact = NATIVE[HEX].measure(NATIVE[HEX].uniform()).exploitability
    monkeypatch.setitem(native.PUBLISHED, NATIVE[HEX].num_infosets, exact + change)
    (case,) = failures("published", {}, game=HEX)
    assert "uniform play: ours has exploitability" in case
    monkeypatch.setitem(native.PUBLISHED, NATIVE[HEX].num_infosets, exact)
    assert run(NATIVE_CHECKS["published"], Settings(game=HEX)).status == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("row", ["measure", "walk"])
def test_an_error_after_an_opening_is_described(row):
    game = load_game(PTTT)
    cases = failures(row, measured(values=slightly_more), game=game)
    assert any("random policy 0, after [" in case for case in cases)
    cases = failures(row, measured(best_responses=last_actions), game=game)
    assert any("'s best response wins" in case for case in cases)


def test_every_check_has_a_planted_error():
    rows = {row for row, _, _ in WRONG_GAMES} | {row for row, _, _ in PLANTED} | {"published"}
    assert rows == rows_of(native, NATIVE_CHECKS)


def test_the_command_checks_the_tree_and_the_native_form(capsys):
    assert check.main(["--game", HEX.name, "--list", "--json"]) == 0
    groups = [row["group"] for row in json.loads(capsys.readouterr().out)]
    assert set(groups) == {"game", "native"}
    assert check.main(["--game", PTTT, "--list", "--json"]) == 0
    groups = [row["group"] for row in json.loads(capsys.readouterr().out)]
    assert set(groups) == {"native"}
    assert check.main(["--game", HEX.name, "--only", "measure", "--quick"]) == 0
    assert "everything agrees" in capsys.readouterr().out
    assert check.main(["--game", "dark_hex(board_size=4)"]) == 2
    assert "no native form" in capsys.readouterr().err


def test_a_phantom_game_is_recognised():
    assert isinstance(NATIVE[HEX], Phantom)
    with pytest.raises(TypeError, match="no rules"):
        native.position(object(), [])
