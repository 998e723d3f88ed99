"""The table of supported games."""

import pytest

from parity import supported


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kuhn_poker", supported.TREE),
        ("phantom_ttt", supported.WITHOUT_TREE),
        ("goofspiel", supported.BOUND),
        ("chess", "too large for a tree, and no tensors for a network"),
        ("backgammon", "no information state strings"),
        ("tarok", "chance outcomes are sampled, not listed"),
        ("mfg_garnet", "mean field games"),
        ("efg_game", "no defaults for all parameters: a file or another game is needed"),
        ("dark_hex_ir", "imperfect recall"),
        ("chat_game", "legal actions outside of its action IDs"),
    ],
)
def test_classes(name, expected):
    assert supported.class_of(name) == expected


@pytest.fixture
def three_games(monkeypatch):
    monkeypatch.setattr(supported, "registered_names", lambda: ["kuhn_poker", "tarok", "chess"])


def test_the_table_of_a_page_is_compared(three_games, tmp_path, capsys):
    assert supported.main([]) == 0
    table = capsys.readouterr().out
    page = tmp_path / "page.md"
    page.write_text(f"# Games\n\n{table}\nMore.", encoding="utf-8")
    assert supported.main(["--check", str(page)]) == 0
    page.write_text(table.replace("`chess`", "`checkers`"), encoding="utf-8")
    assert supported.main(["--check", str(page)]) == 1
    assert "`chess`" in capsys.readouterr().out


def test_every_registered_game_is_counted_but_ours():
    names = supported.registered_names()
    assert "python_kuhn_poker" in names
    assert supported.OURS not in names
    assert len(names) > 100
