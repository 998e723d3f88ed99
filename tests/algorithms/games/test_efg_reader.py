"""The reader of Gambit's `.efg` files: the whole grammar, and one line for each mistake."""

import random
import re
import time
import tracemalloc

import numpy as np
import pytest

from algorithms.games.efg_reader import read_efg
from algorithms.nashconv import evaluate_policy
from algorithms.tree import CHANCE
from kuhn_bridge.errors import BridgeError, GameError

# Myerson's card game, with everything that the format allows.
CARDS = r"""EFG 2 R "A card game
on two lines, with a \"quote\"" { "Fred"	"Alice" }
"A comment, which may
have several lines."

c "ROOT" 1 "deal" { "Red" 1/2 "Black" 0.5 } 0
p "" 1 1 "has red" { "Raise" "Fold" } 7 "ante" { 0, 0.25 }
p "" 2 1 "" { "Meet" "Pass" } 0
t "" 1 "Win big" { 2, -2 }
t "" 2 "Win" { 1 -1 }
t "" 2
p "a node's name" 1 2 "has black" {"Raise" "Fold"} 7
p "" 2 1 0
t "" 3 "Lose big" { -2e0, 2.0 }
t "" 2 "Win" { 1, -1 }
t "" 4 "Lose" { -1, +1, }
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text, **options):
        path = tmp_path / "game.efg"
        path.write_text(text, encoding="utf-8")
        return read_efg(path, **options)

    return read_text


def game_of(*nodes, players=2):
    names = " ".join(f'"{player}"' for player in range(1, players + 1))
    return "\n".join([f'EFG 2 R "" {{ {names} }} ""', *nodes])


def test_texts_players_and_numbers(read):
    game = read(CARDS)
    assert game.title == 'A card game\non two lines, with a "quote"'
    assert game.players == ("Fred", "Alice")
    assert game.actions == (("Raise", "Fold"), ("Meet", "Pass"), ("Raise", "Fold"))
    assert game.chance_actions == (("Red", "Black"),)
    tree = game.tree
    assert tree.num_nodes == 11
    assert tree.keys == ("has red", "#1", "has black")
    assert tree.owner.tolist() == [0, 1, 0]
    assert tree.chance_probability[1:3].tolist() == [0.5, 0.5]
    assert game.events.tolist() == [0] + [-1] * 10


def test_payoffs_on_the_path_are_added(read):
    tree = read(CARDS).tree
    # Alice receives a quarter at both nodes of outcome 7.
    paid = sorted(zip(*tree.returns[:, tree.terminals].tolist(), strict=True))
    assert paid == [(-2, 2.25), (-1, 1.25), (1, -0.75), (1, -0.75), (1, -0.75), (2, -1.75)]
    # He raises and she meets: half of (2, -1.75) and half of (-2, 2.25).
    always = np.array([[1.0, 0], [1, 0], [1, 0]])
    assert evaluate_policy(tree, always).values == (0, 0.25)


def test_a_terminal_node_without_an_outcome_pays_nothing(read):
    tree = read(game_of('p "" 1 1 "" { "a" "b" } 0', 't "" 0', 't "" 1 "" { 1 2 }')).tree
    assert tree.returns[:, tree.terminals].T.tolist() == [[0, 0], [1, 2]]


def test_several_players_and_information_sets_with_equal_numbers(read):
    nodes = ['p "" 3 5 "x" { "a" } 0', 'p "" 1 5 "x" { "a" "b" "c" } 0']
    nodes += ['t "" 1 "" { 1 2 3 }', 't "" 1', 'p "" 1 6 "x" { "d" "e" } 0', 't "" 1', 't "" 0']
    game = read(game_of(*nodes, players=3))
    assert game.tree.owner.tolist() == [2, 0, 0]
    assert game.tree.keys == ("x", "x #5", "x #6")
    assert game.tree.legal.tolist() == [[True, False, False], [True] * 3, [True, True, False]]


def test_rounded_probabilities_are_scaled_to_1(read):
    shares = [0.3333333333333333, 0.3333333333333333, 0.3333333333333334]
    actions = " ".join(f'"{i}" {share}' for i, share in enumerate(shares))
    leaf = ['p "" 1 1 "" { "a" "b" } 0', 't "" 0', 't "" 0']
    tree = read(game_of(f'c "" 1 "" {{ {actions} }} 0', *leaf, *leaf, *leaf)).tree
    chance = tree.chance_probability[1:4]
    assert chance.sum() == 1
    assert chance.tolist() == pytest.approx(shares, abs=1e-15)


def test_an_outcome_of_chance_with_probability_0_is_allowed(read):
    decision = ['p "" 1 1 "" { "a" "b" } 0', 't "" 1 "" { 1 -1 }', 't "" 0']
    tree = read(game_of('c "" 1 "" { "x" 0 "y" 1 } 0', *decision, *decision)).tree
    assert evaluate_policy(tree, tree.uniform()).values == (0.5, -0.5)


ONE = 'p "" 1 1 "" { "a" "b" } 0'
END = 't "" 0'
MISTAKES = [
    ("", "line 1: not an .efg file: it does not start with 'EFG'"),
    ('NFG 1 R "x"', "line 1: not an .efg file: it does not start with 'EFG'"),
    ('EFG 3 R "x" { "1" }', "only version 2"),
    ('EFG 2 X "x" { "1" }', "expected 'R' after 'EFG 2', found 'X'"),
    ('EFG 2 R "x" { }', "the game has no players"),
    ('EFG 2 R "x" { "1" ', "expected a player's name in quotes, or '}' after the last one"),
    ('EFG 2 R "x { 1 }', "line 1: a text has no closing quote"),
    (game_of(), "line 1: expected a node: 'c', 'p' or 't', found the end of the file"),
    (game_of('x "" 0'), "line 2: expected a node: 'c', 'p' or 't', found 'x'"),
    (game_of(END), "no player has a decision"),
    (game_of(ONE, END), "line 3: expected a node: 'c', 'p' or 't', found the end of the file"),
    (game_of(ONE, END, END, END), "line 5: the tree is complete, but 't' follows"),
    (game_of('p "" 3 1 "" { "a" } 0', END), "line 2: player 3; there are players 1 to 2"),
    (game_of('p "" 1 1 0', END), "information set 1 of player 1 has not been described"),
    (game_of('p "" 1 1 "" { } 0', END), "information set 1 of player 1 has no actions"),
    (game_of('p "" 1 -1 "" { } 0', END), "expected the number of an information set, found '-1'"),
    (game_of('c "" 1 0', END), "line 2: chance event 1 has not been described"),
    (game_of('c "" 1 "" { "a" 0.3 "b" 0.3 } 0', END), "event 1 has probabilities that sum to 0.6"),
    (game_of('c "" 1 "" { "a" -1 "b" 2 } 0', END), "chance event 1 has the negative probability"),
    (game_of('c "" 1 "" { "a" 1/0 } 0', END), "a probability, found '1/0', which is not a number"),
    (game_of('c "" 1 "" { "a" 1e999999999 } 0', END), "'1e999999999', which is not a number"),
    (game_of('c "" 1 "" { "a" } 0', END), "expected a probability, found '}'"),
    (game_of(ONE, 't "" 1', END), "line 3: outcome 1 has not been described"),
    (game_of(ONE, 't "" 1 "" { 1 }', END), "line 3: outcome 1 has 1 payoffs for 2 players"),
    (game_of(ONE, 't "" 0 "" { 1 1 }', END), "outcome 0 pays nothing"),
    (game_of(ONE, 't "" 1 "" { 1 x }', END), "expected a payoff, or '}' after the last one"),
    (
        game_of(ONE, 't "" 1 "" { 1 1 }', 't "" 1 "" { 1 2 }'),
        "line 4: outcome 1 was described differently before",
    ),
    (
        game_of('p "" 2 1 "" { "a" "b" } 0', ONE, END, END, 'p "" 1 1 "" { "a" } 0', END),
        "line 6: information set 1 of player 1 was described differently before",
    ),
    (
        game_of('c "" 1 "" { "a" 1 } 0', 'c "" 1 "x" { "a" 1 } 0', END),
        "line 3: chance event 1 was described differently before",
    ),
    (
        game_of(ONE, 't "" 1 "" { 1e300 1 }', 't "" 2 "" { 1e301 1 }'),
        "expected a payoff, found '1e301', which is not a number",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_one_line_with_the_place(read, text, message):
    with pytest.raises(GameError) as caught:
        read(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "game.efg" in str(caught.value)


def test_forgotten_actions_are_refused_with_the_place(read):
    forgets = game_of(ONE, *2 * ['p "" 1 2 "later" { "c" } 0', END])
    with pytest.raises(GameError, match=r"line 5: at information set 2 'later', player 1 '1' has"):
        read(forgets)


def test_absent_mindedness_is_refused_with_the_place(read):
    driver = game_of(ONE, END, ONE, END, END)
    with pytest.raises(
        GameError, match=r"line 4: information set 1 '' of player 1 '1' occurs twice"
    ):
        read(driver)


def test_a_player_may_know_more_than_a_number_shows(read):
    """Two information sets after different actions are no imperfect recall."""
    knows = game_of(ONE, 'p "" 1 2 "" { "c" } 0', END, 'p "" 1 3 "" { "c" } 0', END)
    assert len(read(knows).tree.keys) == 3


def test_a_file_of_other_bytes_names_the_line(tmp_path):
    path = tmp_path / "latin.efg"
    path.write_bytes('EFG 2 R "x"\n{ "José" }'.encode("latin-1"))
    with pytest.raises(GameError, match="line 2: the file is not UTF-8 text"):
        read_efg(path)


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "bom.efg"
    path.write_text(CARDS, encoding="utf-8-sig")
    assert read_efg(path).tree.num_nodes == 11


def test_more_nodes_than_allowed_are_refused(read):
    assert read(CARDS, max_nodes=11).tree.num_nodes == 11
    with pytest.raises(GameError, match="too large for a tree: more than 10 nodes"):
        read(CARDS, max_nodes=10)


def test_many_actions_times_many_information_sets_are_refused_before_they_take_memory(read):
    """A table would have 12,000 x 12,000 entries."""
    wide = " ".join(f'"{i}"' for i in range(12_000))
    nodes = [f'p "" 1 0 "" {{ {wide} }} 0', *[END] * 11_999]
    nodes += [f'p "" 1 {i} "" {{ "a" }} 0' for i in range(1, 12_000)]
    tracemalloc.start()
    with pytest.raises(GameError, match="too large for a tree"):
        read(game_of(*nodes, END))
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


def test_deep_trees_need_no_recursion(read):
    nodes = [f'p "" 1 {i} "" {{ "a" }} 0' for i in range(1, 20_000)]
    assert read(game_of(*nodes, END)).tree.num_nodes == 20_000


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"{}]+|[{}]|\s+', re.DOTALL)
CHARACTERS = ['"', "{", "}", "0", "9", "-1", "1/3", "1e400", "c", "p", "t", "\\", "\n", "\x00", "é"]
TOKENS = [
    " ",
    '"',
    "{",
    "}",
    ' "extra" ',
    "9" * 5_000,
    "1e300",
    "1e999999999",
    "1/0",
    "nan",
    "1.2.3",
]


def damaged(text, generator):
    """The text after one to three random changes, or another one: a deep or a wide game."""
    change = generator.choice([change_characters, change_tokens, change_tokens, deep_or_wide])
    for _ in range(generator.randint(1, 3)):
        text = change(text, generator)
    return text


def change_characters(text, generator):
    """Put something in the place of up to 200 characters, for example a quote or nothing."""
    start = generator.randrange(len(text))
    stop = min(len(text), start + generator.choice([0, 1, 1, 2, 10, 200]))
    put = generator.choice([*CHARACTERS, text[start:stop] * 2, ""])
    return text[:start] + put + text[stop:]


def change_tokens(text, generator):
    """Remove a token, repeat it, put it in another place, or put another one in its place."""
    tokens = TOKEN.findall(text)
    one, other = generator.randrange(len(tokens)), generator.randrange(len(tokens))
    changed = generator.choice(["", 2 * tokens[one], tokens[other], generator.choice(TOKENS)])
    tokens[one] = changed
    return "".join(tokens)


def deep_or_wide(_text, generator):
    """Up to a thousand braces, nodes on a path, actions or players; often one more or fewer."""
    count = generator.choice([1, 10, 1_000])
    leaves = count + generator.randint(-1, 1)
    path = [f'p "" 1 {number} "" {{ "a" }} 0' for number in range(count)]
    actions = ' "a"' * count
    return generator.choice([
        game_of("{" * count),
        game_of('c "" 1 "" { "a" 1 } 0\n' * count),
        game_of(*path, *(leaves - count + 1) * [END]),
        game_of(f'p "" 1 1 "" {{{actions} }} 0', *leaves * [END]),
        game_of(ONE, END, f't "" 1 "" {{{" 1" * leaves} }}', players=count),
    ])  # fmt: skip


def test_damaged_files_are_one_line_in_bounded_time(tmp_path):
    """A sample of `python -m tests.torture games`, which has ten thousand."""
    generator = random.Random(0)
    path = tmp_path / "game.efg"
    refused = 0
    lines = set()
    for _ in range(400):
        path.write_text(damaged(CARDS, generator), encoding="utf-8")
        start = time.process_time()
        try:
            tree = read_efg(path).tree
            assert np.isfinite(evaluate_policy(tree, tree.uniform()).nash_conv)
        except BridgeError as error:
            refused += 1
            lines.add(str(error).count("\n"))
        assert time.process_time() - start < 2
    assert refused > 200
    assert lines == {0}


def test_chance_acts_where_the_file_says(read):
    game = read(CARDS)
    assert (game.events >= 0).tolist() == (game.tree.player == CHANCE).tolist()
