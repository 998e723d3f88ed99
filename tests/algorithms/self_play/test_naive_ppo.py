"""Naive self-play: stock PPO on an environment that mixes the seats, and its command."""

import json

import numpy as np
import pytest
from sb3_contrib import MaskablePPO

from algorithms.policies import load_policy
from algorithms.self_play.curve import from_csv
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.self_play.naive_ppo import NaiveSettings, TurnsEnv, make_model, train
from algorithms.train_ppo import main
from kuhn_bridge import BridgeError

SHORT = ["--recipe", "usual", "--steps", "128", "--n-steps", "64"]


@pytest.mark.parametrize(
    ("actions", "reward"), [((0, 1, 0), 2), ((0, 1, 2), -1), ((1, 2), -1), ((1, 0), -2)]
)
def test_the_last_to_act_is_paid(actions, reward):
    """Its own chips, at the end of a trajectory in which both seats took turns."""
    env = TurnsEnv()
    env.reset(options={"cards": ("K", "J")})
    *before, last = (env.step(np.int64(action)) for action in actions)
    assert [(step[1], step[2]) for step in before] == [(0, False)] * len(before)
    assert (last[1], last[2]) == (reward, True)


def test_the_model_is_stock_ppo():
    model = make_model(NaiveSettings())
    stock = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1))
    for name in ("learning_rate", "n_steps", "batch_size", "n_epochs", "ent_coef", "vf_coef"):
        assert getattr(model, name) == getattr(stock, name), name
    assert model.clip_range(1.0) == stock.clip_range(1.0)


def test_the_command_writes_a_model_its_curve_and_its_results(tmp_path, capsys):
    out = tmp_path / "naive.zip"
    checkpoint = tmp_path / "naive.ckpt"
    checkpoint.write_bytes(b"of another run")
    assert main([*SHORT, "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["config"]["learning_rate"] == 3e-4
    assert result["nash_conv"] == pytest.approx(load_policy(out).nash_conv())
    assert result["nash_conv"] == pytest.approx(result["nash_conv_last"], abs=1e-6)
    assert len(from_csv(tmp_path / "naive.csv")) == 3
    assert (tmp_path / "naive.png").exists()
    model = MaskablePPO.load(out, device="cpu")
    assert (model.holds, model.num_timesteps) == ("last", 128)
    assert checkpoint.exists()  # it writes none, so it removes none


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--game", "leduc_poker"], "--game: it has no effect on naive self-play, which has"),
        (["--kl", "0.1"], "--kl: it has no effect"),
        (["--save", "average"], "--save: it has no effect"),
        (["--resume"], "--resume: it has no effect"),
        (["--batch-size", "1"], "a batch of a single decision"),
        (["--n-steps", "65"], "a batch of a single decision"),
    ],
)
def test_what_it_cannot_do_is_one_line(tmp_path, capsys, options, word):
    assert main([*SHORT, "--out", str(tmp_path / "naive.zip"), *options]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1


def test_impossible_settings_are_refused():
    with pytest.raises(BridgeError, match="want a whole number from 1 to"):
        NaiveSettings(steps=0)


def test_equal_seeds_are_equal_runs():
    settings = NaiveSettings(steps=128, n_steps=64, seed=3)
    _, first = train(settings)
    _, second = train(settings)
    assert [point.last for point in first.points] == [point.last for point in second.points]
