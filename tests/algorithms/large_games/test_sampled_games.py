"""Games that do not fit a tree, as a user meets them: docs/large-games.md."""

import json

import numpy as np
import pytest

from algorithms import curves, dominance, export_onnx, nashconv, solve, train_ppo
from algorithms.large_games.large_game import LargeExactGame
from algorithms.self_play import training_run as training
from kuhn_bridge import Policy, load_game, load_policy

UNMEASURED = "dark_hex(num_rows=2,num_cols=4,obstype=reveal-numturns)"
LARGE_EXACT = "dark_hex(num_rows=2,num_cols=4)"
FEW = ("--steps", "256", "--n-envs", "16", "--n-steps", "8", "--width", "16")


def trained(path, *options, game=UNMEASURED):
    """The result of a short training run."""
    assert train_ppo.main(["--game", game, *FEW, *options, "--out", str(path)]) == 0
    return json.loads(path.with_suffix(".json").read_text())


@pytest.mark.parametrize("command", [solve, dominance])
def test_commands_that_need_a_tree_name_those_that_do_not(command, refused):
    error = refused(command.main, ["--game", "dark_hex(num_rows=4,num_cols=3)"])
    assert "is too large for a tree" in error
    assert error.endswith("; training, matches and nashconv need no tree\n")


@pytest.mark.parametrize(("rows", "cols", "nash_conv"), [(2, 3, 0.75), (3, 2, 1.6)])
def test_classical_dark_hex_on_small_boards_is_measured_by_its_own_class(rows, cols, nash_conv):
    """The figures are those of a walk over OpenSpiel's states, keyed by own sequences."""
    game = load_game(f"dark_hex(num_rows={rows},num_cols={cols})")
    assert isinstance(game, LargeExactGame)
    assert Policy.uniform(game).nash_conv() == pytest.approx(nash_conv, abs=1e-12)


def test_a_curve_has_bounds_only_if_asked_for_and_never_calls_them_nash_conv(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(training, "BOUND_HANDS", 1_000)
    plain = trained(tmp_path / "plain.zip")
    assert not [name for name in plain if "nash_conv" in name]
    capsys.readouterr()
    bounded = trained(tmp_path / "bounded.zip", "--bound-decisions", "500", "--points", "1")
    printed = capsys.readouterr().out
    assert "Lower bounds of NashConv at 2 points of the curve, each from 8 best resp" in printed
    assert "\nNashConv at least " in printed
    assert "bounded.png" not in printed
    names = [name for name in bounded if "nash_conv" in name]
    assert names == ["nash_conv_at_least_last", "nash_conv_at_least_average"]
    assert min(bounded[name] for name in names) >= 0
    assert bounded["holds"] == "average"  # bounds do not rank policies
    header, *points = (tmp_path / "bounded.csv").read_text().splitlines()
    assert header == "steps,seconds,nash_conv_at_least,nash_conv_at_least_average"
    assert len(points) == 2
    assert curves.main([str(tmp_path / "bounded.csv")]) == 2
    assert "not a learning curve" in capsys.readouterr().err
    policies = [load_policy(tmp_path / name) for name in ("plain.zip", "bounded.zip")]
    inputs = np.eye(224, dtype=np.float32)
    legal = np.ones((224, 8), np.bool_)
    both = [policy.probabilities(inputs, legal) for policy in policies]
    np.testing.assert_array_equal(*both)  # measuring leaves the run as it was


@pytest.mark.parametrize(
    ("game", "words"),
    [
        (LARGE_EXACT, f"bound_decisions: NashConv of {LARGE_EXACT} is measured exactly"),
        ("leduc_poker", "bound_decisions=9: it has no effect on a table"),
    ],
)
def test_bounds_are_for_games_without_an_exact_measure(game, words, refused):
    assert words in refused(train_ppo.main, ["--game", game, "--bound-decisions", "9"])


@pytest.mark.parametrize("game", [LARGE_EXACT, UNMEASURED])
def test_an_exported_model_of_a_large_game_plays_as_the_zip_does(game, tmp_path, capsys):
    model = tmp_path / "model.zip"
    exported = tmp_path / "policy.onnx"
    trained(model, "--points", "0", "--quiet", game=game)
    assert export_onnx.main([str(model), "--out", str(exported)]) == 0
    policies = [load_policy(path) for path in (model, exported)]
    assert {policy.game.name for policy in policies} == {game}
    observations = policies[0].game.observation_size + 2
    legal = np.ones((64, 8), np.bool_)
    inputs = np.random.default_rng(0).integers(0, 2, (64, observations)).astype(np.float32)
    one, other = (policy.probabilities(inputs, legal) for policy in policies)
    np.testing.assert_allclose(one, other, atol=1e-6)
    if game == LARGE_EXACT:
        assert nashconv.main([str(model), str(exported)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len({line.split()[1] for line in lines[2:4]}) == 1  # the same NashConv
