"""The training command: what it writes, that it repeats itself, and that it can be stopped."""

import io
import json
import math
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO

from algorithms import curves, train_ppo
from algorithms.games import load_game, openspiel
from algorithms.policies import load_policy
from algorithms.policies.network import network_table
from algorithms.self_play import curve, saving
from algorithms.self_play import training_run as training
from algorithms.self_play.curve import COLUMNS, Point, Recorder, from_csv, to_csv
from algorithms.self_play.saving import save_model
from algorithms.self_play.settings import configure
from algorithms.self_play.training_run import Training, read_checkpoint
from algorithms.train_ppo import main
from kuhn_bridge import BridgeError
from tests.games import LEGAL

ROOT = Path(train_ppo.__file__).parents[1]
SMALL = ["--steps", "12000", "--n-envs", "256", "--checkpoint-every", "2000", "--n-steps", "8"]


KUHN = load_game("kuhn")
DICE3 = "liars_dice(numdice=1,dice_sides=3)"
# A process in which this project cannot be imported opens a model and plays with it.
ELSEWHERE = """
import sys
import numpy as np

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"algorithms", "kuhn_bridge", "parity"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nowhere())
from sb3_contrib import MaskablePPO

for name in sys.argv[1:]:
    model = MaskablePPO.load(f"{name}.zip", device="cpu")
    seen, legal = np.load(f"{name}-seen.npy"), np.load(f"{name}-legal.npy")
    actions, _ = model.predict(seen, action_masks=legal)
    assert legal[np.arange(len(seen)), actions].all()
    assert isinstance(model.learning_rate, float)
    print(model.game, model.policy_class.__module__, type(model.policy.optimizer).__module__)
"""


def run(out, *options):
    """Train without drawing the picture, which would take longer; the policy that was saved."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving, "draw", lambda *args: None)
        assert main(["--out", str(out), "--quiet", *SMALL, *options]) == 0
    return load_policy(out)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The model of a finished training run, and what the command printed."""
    out = tmp_path_factory.mktemp("trained") / "model.zip"
    said = io.StringIO()
    with redirect_stdout(said):
        assert main(["--out", str(out), *SMALL, "--save", "both"]) == 0
    return out, said.getvalue()


def test_a_training_run_writes_a_model_and_its_files(trained):
    out, said = trained
    assert "12,000 steps" in said
    assert "seed 0" in said
    assert "average policy" in said
    files = {path.name for path in out.parent.iterdir()}
    assert files == {"model.zip", "model.last.zip", "model.csv", "model.png", "model.json"}
    about = json.loads(out.with_suffix(".json").read_text())
    assert about["config"]["exploration"] == 0.3
    assert about["game"] == "kuhn"
    assert about["holds"] == "average"
    assert "torch" in about["versions"]
    saved = load_policy(out)
    assert load_policy(out.with_suffix(".json")) == saved  # a policy file as well
    curve = from_csv(out.with_suffix(".csv"))
    assert about["nash_conv"] == pytest.approx(curve[-1].average, abs=1e-5)
    assert [point.steps for point in curve] == sorted({point.steps for point in curve})


def test_sb3_opens_the_model_and_plays_what_we_read(trained):
    model = MaskablePPO.load(trained[0], device="cpu")
    policy = load_policy(trained[0])
    seen = torch.tensor(KUHN.observations)
    probabilities = model.policy.get_distribution(seen, LEGAL.copy()).distribution.probs
    assert np.abs(probabilities.detach().numpy() - policy.table).max() < 1e-6
    actions, _ = model.predict(KUHN.observations)  # even without masks it keeps to the rules
    assert LEGAL[np.arange(12), actions].all()
    assert (model.holds, model.game) == ("average", "kuhn")
    about = json.loads(trained[0].with_suffix(".json").read_text())
    assert model.num_timesteps == about["steps"] >= 12_000


def test_models_open_where_this_project_is_not_installed(tmp_path):
    made = {
        "network": ("kuhn", ["--net", "mlp", "--save", "average", "--width", "16"]),
        "table": ("leduc_poker", []),
        "three": ("kuhn_poker(players=3)", ["--net", "mlp", "--save", "last"]),
        "states": ("leduc_poker", ["--env", "states", "--n-envs", "16", "--n-steps", "8"]),
        "ppo": ("leduc_poker", ["--env", "states", "--learner", "ppo", "--n-envs", "16"]),
    }
    for name, (game, options) in made.items():
        run(tmp_path / f"{name}.zip", "--game", game, *options, "--steps", "512")
        loaded = load_game(game)
        np.save(tmp_path / f"{name}-seen.npy", loaded.network_inputs())
        np.save(tmp_path / f"{name}-legal.npy", loaded.tree.legal)
    command = [sys.executable, "-W", "error", "-c", ELSEWHERE, *made]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    classes = "sb3_contrib.common.maskable.policies torch.optim.adam"
    assert done.stdout.splitlines() == [f"{game} {classes}" for game, _ in made.values()]


def test_a_table_is_trained_where_tensors_do_not_tell_information_sets_apart(tmp_path, capsys):
    """`dark_hex(board_size=2)`: 134 information sets, 70 tensors. A policy file, but no model."""
    options = ["--game", "dark_hex(board_size=2)", "--out", str(tmp_path / "model.zip")]
    few = ["--steps", "60000", "--n-envs", "512"]
    assert main([*options, *few]) == 0
    assert "model.zip" not in capsys.readouterr().out
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".png", ".json"}
    about = json.loads((tmp_path / "model.json").read_text())
    measured = load_policy(tmp_path / "model.json").nash_conv()
    assert measured == pytest.approx(about["nash_conv"])
    assert measured < about["nash_conv_uniform"] / 2
    for other in (["--net", "mlp"], ["--env", "aec"]):
        assert main([*options, *few, *other]) == 2
        error = capsys.readouterr().err
        assert "134 information sets" in error
        assert "70" in error


def test_a_seed_decides_everything_and_the_last_policy_is_saved_if_asked_for(tmp_path, trained):
    out = tmp_path / "model.zip"
    first = trained[0]
    again = run(out, "--save", "average")
    assert again == load_policy(first)
    one, two = (from_csv(path.with_suffix(".csv")) for path in (first, out))
    assert [p._replace(seconds=0) for p in one] == [p._replace(seconds=0) for p in two]
    assert run(out, "--save", "average", "--seed", "1") != again
    assert run(out, "--save", "last") == load_policy(first.with_suffix(".last.zip")) != again


@pytest.mark.parametrize("game", ["kuhn", "leduc_poker"])
def test_it_trains_the_same_on_either_environment(tmp_path, game):
    few = ["--game", game, "--n-envs", "1", "--n-steps", "32", "--steps", "320", "--save", "last"]
    fast = run(tmp_path / "a.zip", *few, "--env", "tree")
    assert run(tmp_path / "b.zip", *few, "--env", "aec") == fast
    assert np.abs(fast.table - load_game(game).tree.uniform()).max() > 0.01


def killed(out, *options, at):
    """A training run that dies at step `at`, whatever it is doing."""

    def die(self, steps, *args):
        if steps >= at:
            raise SystemExit(9)
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "is_due", die)
        with pytest.raises(SystemExit):
            run(out, *options)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--net", "mlp", "--n-steps", "2", "--width", "16"],
        ["--env", "aec", "--n-envs", "16", "--n-steps", "8"],
        ["--game", "leduc_poker"],
        ["--game", "leduc_poker", "--env", "aec", "--n-envs", "16", "--n-steps", "8"],
        ["--game", "leduc_poker", "--env", "states", "--n-envs", "16", "--n-steps", "8"],
        [
            *[
                "--game",
                "leduc_poker",
                "--env",
                "states",
                "--learner",
                "ppo",
                "--n-envs",
                "16",
                "--n-steps",
                "8",
            ]
        ],
        ["--game", "phantom_ttt", "--n-envs", "16", "--n-steps", "8", "--points", "0"],
    ],
)
def test_a_resumed_training_run_is_the_uninterrupted_one(tmp_path, options):
    steps = 1024 if "--n-envs" in options else 6000
    out = tmp_path / "model.zip"
    whole = tmp_path / "whole.zip"
    options = ["--steps", str(steps), "--checkpoint-every", str(steps // 4), *options]
    run(whole, *options)
    killed(out, *options, at=steps * 2 // 3)
    state = read_checkpoint(tmp_path / "model.ckpt")
    assert 0 < state["steps"] <= steps * 0.77
    run(out, *options, "--resume")
    one, other = (MaskablePPO.load(path, device="cpu").policy.parameters() for path in (out, whole))
    assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))
    assert not (tmp_path / "model.ckpt").exists()


def test_ctrl_c_saves_and_says_so(tmp_path, trained, monkeypatch, capsys):
    whole = load_policy(trained[0])
    out = ["--out", str(tmp_path / "model.zip")]
    with monkeypatch.context() as patch:
        note = train_ppo._note

        def press(point, *, bounded):
            if point.steps == 6144:
                signal.raise_signal(signal.SIGINT)
            return note(point, bounded=bounded)

        patch.setattr(train_ppo, "_note", press)
        assert main([*out, *SMALL, "--save", "average"]) == 130
    said = capsys.readouterr().err
    assert "interrupted at step 8,192, saved" in said
    assert "--resume" in said
    assert load_policy(tmp_path / "model.zip") != whole
    assert json.loads((tmp_path / "model.json").read_text())["finished"] is False
    assert main([*out, "--resume", "--quiet", "--save", "average"]) == 0
    assert json.loads((tmp_path / "model.json").read_text())["finished"] is True
    assert load_policy(tmp_path / "model.zip") == whole


def test_kill_9_loses_no_more_than_an_interval(tmp_path):
    options = ["--steps", "100000", "--n-envs", "1024", "--n-steps", "8"]
    options += ["--checkpoint-every", "4000"]
    out = tmp_path / "model.zip"
    checkpoint = tmp_path / "model.ckpt"
    command = [sys.executable, "-m", "algorithms.train_ppo", "--out", str(out), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert run(out, *options, "--resume") == run(tmp_path / "whole.zip", *options)


def test_a_failed_write_leaves_the_old_file(tmp_path, trained, monkeypatch):
    (tmp_path / "model.zip").write_bytes(trained[0].read_bytes())

    def fail(self, path, **kwargs):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MaskablePPO, "save", fail)
        assert main(["--out", str(tmp_path / "model.zip"), "--quiet", *SMALL, "--seed", "3"]) == 2
    assert (tmp_path / "model.zip").read_bytes() == trained[0].read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert main(["--out", str(tmp_path / "model.zip"), "--quiet", "--resume"]) == 0


FEW = ["--steps", "2048", "--n-envs", "32", "--n-steps", "16", "--batch-size", "128"]


def test_a_game_too_large_for_a_tree_is_trained_by_default(tmp_path, capsys):
    out = tmp_path / "model.zip"
    assert main(["--game", "phantom_ttt", "--out", str(out), *FEW, "--json", "--points", "0"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["game"], result["holds"]) == ("phantom_ttt", "average")
    assert (result["config"]["env"], result["config"]["net"]) == ("states", "mlp")
    assert "nash_conv" not in result  # nothing was measured
    header, *rows = (tmp_path / "model.csv").read_text().splitlines()
    assert (header, len(rows)) == ("steps,seconds", 5)  # at the start and after four rollouts
    assert {path.suffix for path in tmp_path.iterdir()} == {".zip", ".csv", ".json"}
    model = MaskablePPO.load(out, device="cpu")
    assert model.game == "phantom_ttt"
    assert model.observation_space.shape == (110,)
    assert isinstance(model.learning_rate, float)


@pytest.fixture
def large(monkeypatch):
    """A large game that is quickly measured, taken for one that is too large for a tree."""
    monkeypatch.setattr(openspiel, "estimated_nodes", lambda *args, **kwargs: math.inf)
    # Games are cached by name: no other test writes it in this way.
    return "dark_hex(obstype=reveal-nothing,gameversion=cdh,board_size=2)"


def test_a_large_game_is_measured_exactly_at_a_handful_of_points(tmp_path, large, capsys):
    out = tmp_path / "model.zip"
    assert main(["--game", large, "--out", str(out), *FEW]) == 0
    said = capsys.readouterr().out
    assert "Exact NashConv at 6 points of the curve, each of two networks at 70 information" in said
    assert "--points 0 leaves it out" in said
    assert "The first point took" in said
    curve = from_csv(out.with_suffix(".csv"))
    assert [point.steps for point in curve] == [0, 512, 1024, 1536, 2048]  # after 4 rollouts
    about = json.loads(out.with_suffix(".json").read_text())
    assert about["nash_conv"] == pytest.approx(load_policy(out).nash_conv(), abs=1e-6)
    assert about["exploitability"] == about["nash_conv"] / 2
    assert about["nash_conv_average"] == curve[-1].average
    uniform = load_policy("uniform", large).nash_conv()
    assert about["nash_conv_uniform"] == pytest.approx(uniform)
    assert about["cpu_seconds"] > 0 < about["measuring_cpu_seconds"]
    assert {path.suffix for path in tmp_path.iterdir()} == {".zip", ".csv", ".json", ".png"}
    assert main(["--game", large, "--out", str(out), *FEW, "--quiet", "--points", "1"]) == 0
    assert [point.steps for point in from_csv(out.with_suffix(".csv"))] == [0, 2048]


def test_measuring_is_not_counted_as_training(monkeypatch):
    cpu_seconds = 0.0

    def work(seconds):
        nonlocal cpu_seconds
        cpu_seconds += seconds
        return 0.5, 0.5

    monkeypatch.setattr(curve, "_now", lambda: curve.Clocks(2 * cpu_seconds, cpu_seconds))
    recorder = Recorder()
    resumed = Recorder()
    recorder.start()
    recorder.add(0, lambda: work(3.0))
    work(1.0)
    resumed.set_state(recorder.get_state())
    for clocks in (recorder, resumed):
        assert (clocks.seconds, clocks.cpu_seconds, clocks.measuring_cpu_seconds) == (2, 1, 3)


def test_progress_is_shown_between_the_points_of_a_curve():
    shown: list[Point] = []
    made = Training(configure({**TINY, "points": 1}), watch=shown.append)
    made.run()
    assert [point.steps for point in made.recorder.points] == [0, 160]
    assert [point.steps for point in shown] == [0, 32, 64, 96, 128, 160]
    assert shown[3].last == made.recorder.points[0].last


def test_on_states_a_run_starts_from_a_model(tmp_path):
    few = [
        *[
            "--game",
            "leduc_poker",
            "--env",
            "states",
            "--learner",
            "ppo",
            "--steps",
            "256",
            "--n-envs",
            "16",
        ]
    ]
    few += ["--n-steps", "8", "--width", "16", "--quiet"]
    first = tmp_path / "first.zip"
    assert main(["--out", str(first), *few, "--save", "last"]) == 0
    settings = {"game": "leduc_poker", "env": "states", "n_envs": 2, "width": 16}
    made = Training(configure(settings | {"init": str(first)}))
    table = network_table(made.learner.last, made.game)
    assert np.abs(table - load_policy(first).table).max() < 1e-6
    with pytest.raises(BridgeError, match="its network has other layers; want weights"):
        Training(configure(settings | {"width": 32, "init": str(first)}))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--out", "{}/none/model.zip"], "there is no directory"),
        (["--out", "{}"], ".zip"),
        (["--out", "{}/model.pt"], ".zip"),
        (["--out", ""], ".zip"),
        (["--resume"], "nothing to resume"),
        (["--steps", "0"], "steps=0"),
        (["--steps", "1000000000000000000000"], "want a whole number from 1 to"),
        (["--game", "leduc_poker", "--env", "states", "--vf-coef", "1e300"], "diverged"),
        (["--game", "chess"], "information state tensor"),
        (["--game", "negotiation"], "samples chance outcomes"),
        (["--game", "dark_hex_ir"], "the player has forgotten its earlier actions"),
        (["--init", "{}/none.zip"], "none.zip"),
    ],
)
def test_mistakes_are_one_line_and_cost_nothing(tmp_path, capsys, options, word):
    options = [option.format(tmp_path) for option in options]
    assert main(["--out", str(tmp_path / "model.zip"), *SMALL, *options]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1
    assert not (tmp_path / "model.zip").exists()


@pytest.mark.parametrize("suffix", [".zip", ".csv", ".png", ".json", ".ckpt"])
def test_what_cannot_be_written_in_the_end_is_refused_before(tmp_path, capsys, suffix):
    (tmp_path / f"model{suffix}").mkdir()
    assert main(["--out", str(tmp_path / "model.zip"), *SMALL]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert f"model{suffix}" in said.err
    assert not said.out
    assert len(list(tmp_path.iterdir())) == 1


def test_other_settings_are_refused_on_resume(tmp_path, capsys):
    killed(tmp_path / "model.zip", at=4000)
    kept = (tmp_path / "model.ckpt").read_bytes()
    assert main(["--out", str(tmp_path / "model.zip"), "--resume", "--exploration", "0.5"]) == 2
    assert "exploration 0.3" in capsys.readouterr().err
    assert (tmp_path / "model.ckpt").read_bytes() == kept


def test_a_run_starts_from_a_model(tmp_path):
    first = run(tmp_path / "first.zip", "--steps", "100000")
    for net in ("table", "mlp"):
        made = Training(configure({"net": net, "init": str(tmp_path / "first.zip")}))
        made.learner.start(total_steps=1_000_000)
        assert np.abs(made.learner.last - first.table).max() < 1e-6
    more = ["--init", str(tmp_path / "first.zip"), "--steps", "100000"]
    assert run(tmp_path / "more.zip", *more).nash_conv() < first.nash_conv()


def test_settings_reach_the_model(tmp_path):
    settings = configure(
        {
            "game": "leduc_poker",
            "env": "states",
            "vf_coef": 0.75,
            "seed": 7,
            "n_steps": 128,
            "n_envs": 2,
            "width": 24,
            "learning_rate": 0.5,
            "ent_coef": 0.25,
            "epochs": 3,
        }
    )
    model = Training(settings, tensorboard=tmp_path).model
    assert (model.vf_coef, model.seed, model.n_steps, model.n_envs) == (0.75, 7, 128, 2)
    assert (model.ent_coef, model.n_epochs) == (0.25, 3)
    assert model.tensorboard_log == str(tmp_path)
    assert model.policy.net_arch == [24, 24]
    assert [model.lr_schedule(left) for left in (1.0, 0.5, 0.0)] == [0.5, 0.25, 0.005]


def test_the_width_of_a_network_on_a_tree_is_that_of_the_saved_one(tmp_path):
    run(tmp_path / "model.zip", "--net", "mlp", "--width", "24")
    assert MaskablePPO.load(tmp_path / "model.zip", device="cpu").policy.net_arch == [24, 24]


@pytest.mark.parametrize(
    "text",
    [
        *("", "x" * 200_000, "a,b\n1,2\n", '"' * 200_000),
        f"{','.join(COLUMNS)}\n{'9' * 400},1,1,1\n",
        "steps,seconds,nash_conv_at_least,nash_conv_at_least_average\n1,1,1,1\n",  # a bound
    ],
)
def test_other_files_are_no_curves(tmp_path, capsys, text):
    (tmp_path / "model.csv").write_text(text)
    (tmp_path / "model.json").write_text("[" * 100_000)  # nor does it name a game
    out = ["--out", str(tmp_path / "curve.png")]
    assert curves.main([str(tmp_path / "model.csv"), *out]) == 2
    assert "not a learning curve" in capsys.readouterr().err


def test_curves_are_drawn_beside_uniform_play(tmp_path):
    path = tmp_path / "curve.svg"
    curve.draw({"run": [Point(0, 0.0, 0.9, 0.9), Point(100, 1.5, 0.3, 0.2)]}, path, KUHN)
    comments = re.findall("<!-- (.*?) -->", path.read_text())  # all text of the picture
    assert {"uniform", "11/12", "run: average policy", "run: last policy"} <= set(comments)


def test_curves_are_read_back_and_drawn(tmp_path, capsys):
    curve = [Point(0, 0.0, 0.9, 0.9), Point(100, 1.5, 1 / 3, 0.25)]
    text = to_csv(curve)
    assert text.startswith("steps,seconds,nash_conv,nash_conv_average\n0,0.00,0.9,0.9\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(text)
    assert from_csv(tmp_path / "one.csv") == curve
    paths = [str(tmp_path / f"{name}.csv") for name in ("one", "two")]
    assert curves.main([*paths, "--out", str(tmp_path / "both.png")]) == 0
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "two.json").write_text('{"config": {"game": "leduc_poker"}}')
    assert curves.main([*paths, "--out", str(tmp_path / "both.png")]) == 2
    assert "different games" in capsys.readouterr().err
    assert curves.main([*paths, "--game", "kuhn", "--out", str(tmp_path / "both.png")]) == 0


def test_a_game_that_uniform_play_solves_is_drawn_too(tmp_path):
    """Its NashConv is 0, of which there is no logarithm; a warning would be an error here."""
    options = ["--game", "matrix_rps", "--steps", "4096", "--quiet"]
    assert main(["--out", str(tmp_path / "model.zip"), *options]) == 0
    assert from_csv(tmp_path / "model.csv")[0].last == 0
    assert (tmp_path / "model.png").read_bytes().startswith(b"\x89PNG")


TINY = {"n_envs": 8, "n_steps": 4, "steps": 160}  # five updates


def test_checkpoints_are_as_far_apart_as_asked_for(tmp_path, monkeypatch):
    kept: list[dict[str, Any]] = []
    monkeypatch.setattr(training, "write_checkpoint", lambda path, state: kept.append(state))
    for state, steps in ((None, [0, 64, 128]), (64, [0, 64, 128, 128])):
        made = Training(configure(TINY), checkpoint=tmp_path / "x.ckpt", checkpoint_every=64)
        if state is not None:
            made.set_state(next(one for one in kept if one["steps"] == state))
        made.run()
        assert [one["steps"] for one in kept] == steps


def test_ctrl_c_waits_for_the_update_and_pressed_again_does_not():
    before = signal.getsignal(signal.SIGINT)
    stop = Event()
    with training._interrupt(stop):
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with training._interrupt(stop):
        pass
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("last", "average", "better"), [(1, 0.5, "average"), (0.5, 1, "last")])
def test_the_better_policy_is_saved_with_what_each_information_set_is_worth(
    tmp_path, last, average, better
):
    made = Training(configure(TINY))
    out = tmp_path / "model.zip"
    made.run()
    made.recorder.points[-1] = made.recorder.points[-1]._replace(last=last, average=average)
    assert saving.save_results(made, out, picture=False)["holds"] == better
    table = getattr(made.learner, better)
    assert np.abs(load_policy(out).table - table).max() < 1e-6
    assert {path.suffix for path in tmp_path.iterdir()} == {".zip", ".csv", ".json"}
    expected = torch.tensor(KUHN.infoset_values(table).values).float()
    assert expected.abs().max() > 0.1
    with torch.no_grad():
        model = MaskablePPO.load(out, device="cpu")
        found = model.policy.predict_values(torch.tensor(KUHN.observations))[:, 0]
    assert torch.allclose(found, expected, atol=1e-6)


def test_what_is_too_large_for_a_unit_each_is_fitted(tmp_path, monkeypatch):
    monkeypatch.setattr("algorithms.self_play.saving.MAX_LOOK_UP_WEIGHTS", 100)  # Kuhn takes 120
    made = Training(configure({"steps": 200_000}))
    made.run()
    save_model(made, tmp_path / "model.zip", holds="average")
    assert MaskablePPO.load(tmp_path / "model.zip", device="cpu").policy.net_arch == [128, 128]
    assert np.abs(load_policy(tmp_path / "model.zip").table - made.learner.average).max() < 0.05


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((0.1, 0.1, 0.9), []),
        ((0.1201, 0.1, 0.9), []),  # within a fifth
        ((0.13, 0.1, 0.9), ["could not be fitted"]),
        ((0.0004, 0.0001, 0.9), []),  # nothing that matters
        ((0.95, 0.1, 0.9), ["worse than uniform play", "could not be fitted"]),
    ],
)
def test_a_run_that_failed_says_so(figures, words):
    names = ("nash_conv", "nash_conv_average", "nash_conv_uniform")
    result = {**dict(zip(names, figures, strict=True)), "holds": "average"}
    warnings = saving.warnings_about(result)
    assert len(warnings) == len(words)
    assert all(word in text for word, text in zip(words, warnings, strict=True))


def test_warnings_are_the_last_lines_and_in_json(tmp_path, capsys, monkeypatch):
    assert main(["--out", str(tmp_path / "model.zip"), *SMALL]) == 0
    assert "warning" not in capsys.readouterr().err
    monkeypatch.setattr(saving, "NEGLIGIBLE", -1.0)  # now every network is taken for a bad fit
    assert main(["--out", str(tmp_path / "model.zip"), *SMALL]) == 0
    assert "warning: the network could not be fitted" in capsys.readouterr().err.splitlines()[-1]
    assert len(json.loads((tmp_path / "model.json").read_text())["warnings"]) == 1
