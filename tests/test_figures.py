"""What README and docs say about training runs agrees with curves that the code still produces.

The whole runs take too long for a test. A run depends on its settings and its seed alone, so one
that begins like the stored curve also ends like it.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from algorithms.self_play import naive_ppo
from algorithms.self_play.curve import Point, from_csv
from algorithms.self_play.naive_ppo import NaiveSettings
from algorithms.self_play.settings import configure
from algorithms.self_play.training_run import Training

ROOT = Path(__file__).parent.parent
LEDUC = "leduc_poker"
CURVES: dict[str, dict[str, Any]] = {
    "selfplay": {"seed": 0},
    "leduc_table": {"game": LEDUC, "seed": 0},
    "leduc_mlp": {"game": LEDUC, "seed": 0, "net": "mlp", "steps": 120_000_000},
}
ROW = re.compile(
    r"^\| `(\S+)`.*\| (table|mlp) \| ([\d,]+) \| ([\d. ]+) \| ([\d.]+) \|", re.MULTILINE
)


class Enough(Exception):  # noqa: N818
    """Ends a run after its first points."""


def beginning(train, points):
    """The first points of a run's curve; `train` takes the function that watches it."""
    seen: list[Point] = []

    def watch(point):
        seen.append(point)
        if len(seen) == points:
            raise Enough

    with pytest.raises(Enough):
        train(watch)
    return seen


def assert_begins_like(points, name):
    """Require the first points of a stored curve."""
    stored = {point.steps: point for point in from_csv(ROOT / "docs" / "curves" / f"{name}.csv")}
    # In between, a run shows its latest figures again.
    compared = [point for point in points if point.steps in stored]
    assert len(compared) >= 2
    for found in compared:
        wanted = stored[found.steps]
        assert found.last == pytest.approx(wanted.last, rel=1e-3)
        assert found.average == pytest.approx(wanted.average, rel=1e-3)


def measured():
    """By game and net: the steps, the figures of seeds 0 to 2 and their mean, as in the docs."""
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    return {
        (game, net): (int(steps.replace(",", "")), figures.split(), mean)
        for game, net, steps, figures, mean in ROW.findall(text)
    }


@pytest.mark.parametrize("name", CURVES)
def test_a_stored_curve_begins_as_its_run_begins_today(name):
    settings = configure(CURVES[name])
    points = beginning(lambda watch: Training(settings, watch=watch).run(), 4)
    assert_begins_like(points, name)


def test_the_stored_curve_of_naive_self_play_begins_as_its_run_begins_today():
    points = beginning(lambda watch: naive_ppo.train(NaiveSettings(), watch=watch), 2)
    assert_begins_like(points, "usual")


@pytest.mark.parametrize("name", CURVES)
def test_a_stored_curve_ends_where_the_docs_say(name):
    config = configure(CURVES[name])
    end = from_csv(ROOT / "docs" / "curves" / f"{name}.csv")[-1]
    steps, figures, _ = measured()[config.game, config.net]
    figure = float(figures[config.seed])
    last_digit = 10.0 ** -len(figures[config.seed].partition(".")[2])
    # A network is fitted to the policy that was learned, and may be a little better or worse.
    tolerance = 0.1 if config.net == "mlp" else 0.01
    assert config.steps == steps
    assert figure == pytest.approx(min(end.last, end.average), rel=tolerance, abs=last_digit)
    assert steps <= end.steps < steps + 100_000


def test_means_are_those_of_the_seeds_and_the_readme_has_them():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(measured()) == 6
    for (game, net), (_, figures, mean) in measured().items():
        decimals = len(mean.partition(".")[2])
        average = sum(map(float, figures)) / len(figures)
        assert float(mean) == pytest.approx(average, abs=0.6 * 10**-decimals), (game, net)
        if not game.startswith("goofspiel"):
            (row,) = re.findall(rf"^\| `{re.escape(game)}` \|.*$", readme, re.MULTILINE)
            assert f" {mean} (" in row, (game, net)


def test_naive_self_play_ends_where_the_readme_says():
    end = from_csv(ROOT / "docs" / "curves" / "usual.csv")[-1]
    assert f"| {end.last:.4f} |" in (ROOT / "README.md").read_text(encoding="utf-8")
