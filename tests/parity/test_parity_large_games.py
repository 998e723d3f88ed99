"""`parity.check --game` on large games: it passes, and each check fails on a planted error."""

import json
from dataclasses import replace

import numpy as np
import pytest

from algorithms.games import load_game
from algorithms.large_games.phantom.rules import hex_board
from parity import check
from parity.large_games import exact_form
from parity.registry import CheckSettings, run
from tests.games import altered
from tests.large_games import POKER, SMALL_POKER
from tests.planted_errors import LARGE_CHECKS, failures

HEX = load_game("dark_hex(board_size=2)")
DICE = load_game("liars_dice(numdice=1,dice_sides=3)")
RIVER = load_game(POKER[0])
TURN = load_game(POKER[3])
FULL_DECK = load_game("river(board=7dJc3s9hQd,pot=2000)")
PTTT = "phantom_ttt"


LARGE = [
    PTTT,
    "phantom_ttt(gameversion=abrupt)",
    "dark_hex(board_size=3)",
    "dark_hex(gameversion=adh,board_size=3)",
    "liars_dice(numdice=2,dice_sides=5)",
]


@pytest.mark.parametrize(
    "name",
    [
        "dark_hex(board_size=2)",
        "dark_hex(board_size=2,gameversion=adh)",
        "liars_dice(numdice=1,dice_sides=3)",
        "liars_dice(numdice=2,dice_sides=2,bidding_rule=reset-quantity)",
        *SMALL_POKER,
        FULL_DECK.name,
        pytest.param("dark_hex(num_rows=3,num_cols=2,gameversion=adh)", marks=pytest.mark.slow),
        pytest.param("liars_dice(numdice=1,dice_sides=7)", marks=pytest.mark.slow),
        *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE),
    ],
)
def test_all_checks_pass(name):
    """All are run on one large game; in the others measures take longer than the rest."""
    settings = CheckSettings(quick=True, game=load_game(name))
    skipped = {"walk"} if "dice" in name or "poker" in name or "river" in name else set()
    skipped |= set() if name in LARGE else {"published"}
    for row, item in LARGE_CHECKS.items():
        if name in LARGE[1:] and row in ("measure", "walk"):
            continue
        result = run(item, settings)
        expected = "skipped" if row in skipped else "pass"
        assert result.status == expected, (row, result.cases, result.note)


def wrong(game, name, change):
    """The game measured without a tree, with another attribute or other results of a method."""
    form = altered(exact_form(game))
    right = getattr(form, name)
    new = (lambda *args: change(right(*args))) if callable(right) else change(right)
    setattr(form, name, new)
    return form


def nobody_wins(rules):
    return rules._replace(wins=np.zeros_like(rules.wins))


def nothing_matches(tree):
    return tree._replace(strength=tree.strength * 0)


def one_more_needed(tree):
    return tree._replace(rule_quantity=tree.rule_quantity + 1)


def other_stakes(tree):
    return tree._replace(payoff=tree.payoff * 1.01)


def the_strongest_are_weak(tree):
    by_strength = tree.by_strength.copy()
    for order, count in zip(by_strength, tree.num_hands, strict=True):
        order[:count] = order[:count][::-1].copy()
    return tree._replace(strength=tree.strength.max() - tree.strength, by_strength=by_strength)


def no_shared_cards(tree):
    """As if two hands could hold the same card: every hand has cards of its own."""
    own = np.arange(tree.cards.size, dtype=np.int32).reshape(tree.cards.shape)
    return tree._replace(cards=own)


def wrong_old_hands(tree):
    return tree._replace(old_hand=tree.old_hand[:, ::-1].copy())


def other_weights(tree):
    weight = tree.weight.copy()
    weight[0, 0] *= 1 + 1e-9
    return tree._replace(weight=weight)


def other_bit(observations):
    observations[:, 1] = 1 - observations[:, 1]
    return observations


def last_is_legal(legal):
    legal[:, -1] = True
    return legal


def off_by_a_billionth(name):
    """`values` or `best_values` of a measure a little too high."""
    return lambda right: replace(right, **{name: tuple(x + 1e-9 for x in getattr(right, name))})


def respond_otherwise(game):
    """Another legal action than the best one, where there is one."""

    def change(right):
        responses = []
        for player, best in enumerate(right.best_responses):
            others = exact_form(game).legal(player, 0, len(best))
            others[np.arange(len(best)), best] = False
            responses.append(np.where(others.any(axis=1), others.argmax(axis=1), best))
        return replace(right, compute_best_responses=lambda: tuple(responses))

    return change


WRONG_GAMES = [
    (
        "rules",
        wrong(HEX, "rules", lambda rules: hex_board(2, 2, abrupt=True)),
        "after [0, 0]: ours lets 0 act",
    ),
    ("rules", wrong(HEX, "rules", nobody_wins), "after [0, 1, 2]: ours lets 1 act"),
    ("rules", wrong(HEX, "rules", lambda rules: hex_board(4, 1)), "after [0, 1]: ours lets -4 act"),
    ("rules", wrong(DICE, "public_tree", nothing_matches), "ours pays"),
    ("rules", wrong(DICE, "public_tree", one_more_needed), "ours pays"),
    ("measure", wrong(DICE, "public_tree", nothing_matches), "random policy 0: ours"),
    ("measure", wrong(DICE, "public_tree", one_more_needed), "random policy 0: ours"),
    ("rules", wrong(RIVER, "public_tree", other_stakes), "ours pays"),
    ("rules", wrong(RIVER, "public_tree", the_strongest_are_weak), "ours pays"),
    ("rules", wrong(TURN, "public_tree", the_strongest_are_weak), "ours pays"),
    *(
        ("measure", wrong(game, "public_tree", change), "random policy 0: ours")
        for game, change in (
            (RIVER, other_stakes),
            (RIVER, the_strongest_are_weak),
            (RIVER, no_shared_cards),
            (RIVER, other_weights),
            (TURN, the_strongest_are_weak),
            (TURN, wrong_old_hands),
        )
    ),
    *(
        ("measure", wrong(FULL_DECK, "public_tree", change), "random policy 0, deal [")
        for change in (other_stakes, the_strongest_are_weak)
    ),
    ("tensors", wrong(RIVER, "tensors", other_bit), "ours observes ["),
    ("masks", wrong(TURN, "legal", last_is_legal), "ours allows"),
    ("infosets", wrong(RIVER, "find_infosets", lambda n: n // 2), "as information set 0"),
    ("tensors", wrong(HEX, "tensors", other_bit), "ours observes ["),
    ("tensors", wrong(DICE, "tensors", other_bit), "ours observes ["),
    ("masks", wrong(HEX, "legal", last_is_legal), "[0, 1, 2, 3], OpenSpiel allows [0, 1, 2]"),
    ("masks", wrong(DICE, "legal", last_is_legal), "player 0 after [0, 0]: ours allows"),
    ("infosets", wrong(HEX, "find_infosets", lambda n: n + 1), "is below 17 does not hold"),
    ("infosets", wrong(HEX, "find_infosets", lambda n: n // 2), "has 70 information sets"),
    ("infosets", wrong(DICE, "find_infosets", lambda n: n // 2), "as information set 0"),
    *(
        (row, wrong(HEX, "measure", change), text)
        for row in ("measure", "walk")
        for change, text in (
            (off_by_a_billionth("values"), "random policy 0: ours lets player 0 win"),
            (off_by_a_billionth("best_values"), "random policy 0: ours has best value"),
            (respond_otherwise(HEX), "by its best response"),
        )
    ),
]


@pytest.mark.parametrize(("row", "game", "text"), WRONG_GAMES)
def test_an_error_in_a_large_game_is_described(row, game, text):
    assert any(text in case for case in failures(row, {}, game=game))


@pytest.mark.parametrize("change", [1e-6, -1e-6])
def test_an_error_in_the_sixth_digit_is_described(change):
    form = exact_form(HEX)
    exact = form.measure(form.uniform()).exploitability
    (case,) = failures("published", {"figures": {form.num_infosets: exact + change}}, game=HEX)
    assert "uniform play: ours has exploitability" in case
    right = run(
        LARGE_CHECKS["published"], CheckSettings(game=HEX), figures={form.num_infosets: exact}
    )
    assert right.status == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("row", ["measure", "walk"])
def test_an_error_after_an_opening_is_described(row):
    game = load_game(PTTT)
    for change, text in (
        (off_by_a_billionth("values"), "random policy 0, after ["),
        (respond_otherwise(game), "by its best response"),
    ):
        cases = failures(row, {}, game=wrong(game, "measure", change))
        assert any(text in case for case in cases)


def test_every_check_has_a_planted_error():
    rows = {row for row, _, _ in WRONG_GAMES} | {"published"}
    assert rows == set(LARGE_CHECKS)


def test_the_command_checks_the_tree_and_the_large_game(capsys):
    assert check.main(["--game", HEX.name, "--list", "--json"]) == 0
    groups = [row["group"] for row in json.loads(capsys.readouterr().out)]
    assert set(groups) == {"game", "large game"}
    assert check.main(["--game", PTTT, "--list", "--json"]) == 0
    groups = [row["group"] for row in json.loads(capsys.readouterr().out)]
    assert set(groups) == {"large game"}
    assert check.main(["--game", HEX.name, "--only", "measure", "--quick"]) == 0
    assert "everything agrees" in capsys.readouterr().out
    assert check.main(["--game", "dark_hex(board_size=4)"]) == 2
    assert "no other exact measure of it is known" in capsys.readouterr().err


def test_classical_dark_hex_has_the_checks_of_large_games_alone(capsys):
    """Its strings do not have perfect recall, so there is no tree."""
    assert check.main(["--game", "dark_hex(num_rows=2,num_cols=3)", "--list", "--json"]) == 0
    assert {row["group"] for row in json.loads(capsys.readouterr().out)} == {"large game"}
