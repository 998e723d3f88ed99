"""Every example runs and prints what it should."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SAID = {
    "pettingzoo_loop": ["player_1 won +0."],
    "own_training": ["NashConv: 0.917 playing at random"],
    "large_game": ["; uniform play 1.143", "at least 0.", "  player_0: "],
    "river": ["uniform play: NashConv 5704.6290", "to start: all-in is best"],
    "openspiel_policy": ["NashConv 0.3473", "loses 0.0"],
    "gambit": ["solved: Fred wins 0.3333", "(Fred) at 'black card': Raise 0.333", "trained: "],
    "own_game": ["value +0.3333", "'king': bet 0.333", "'faces a bet': call 0.667"],
    "check_candidate": [
        "  pp with J against Q: pays -2, OpenSpiel pays -1",
        "MyKuhn: exit 1",
        "Corrected: exit 0",
    ],
}
TRAINED = {
    "gambit": r"([\d.]+) after",
    "own_training": r"([\d.]+) now",
    "own_game": r"([\d.]+) after",
}


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_an_example(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    for line in SAID[name]:
        assert line in out
    if name in TRAINED:
        assert float(re.search(TRAINED[name], out)[1]) < 0.3
    assert not list(tmp_path.iterdir())
