"""Sweeps: plans, results that no killed process changes, and their summaries."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from algorithms import curves, sweep, train_ppo
from algorithms.policies import load_policy
from algorithms.self_play.curve import Point, band, draw_bands, interval, iqm, to_csv
from algorithms.support import ray_cluster
from algorithms.support.errors import UsageError
from algorithms.sweep import main
from algorithms.sweeps import plan as planning
from algorithms.sweeps.plan import Plan, parse_choices, parse_seeds, settings_grid
from algorithms.sweeps.results import read_results, to_text
from algorithms.sweeps.running import Progress, TrialEvent
from kuhn_bridge import BridgeError

ROOT = Path(sweep.__file__).parents[1]
EXPLORATION = "exploration"  # the name of the setting

# Plans.


def test_seeds_are_a_range_a_list_or_a_count():
    seeds = {"0-3": (0, 1, 2, 3), "0,3,7": (0, 3, 7), "3": (0, 1, 2), "1-2,9": (1, 2, 9)}
    assert {text: parse_seeds(text) for text in seeds} == seeds


def test_values_have_the_type_of_their_setting_and_commas_only_in_brackets():
    choices = parse_choices(["net=table,mlp", "ent-coef=1,0.3", "game=a(x=1,g=b(y=2,z=3)),c"])
    games = ["a(x=1,g=b(y=2,z=3))", "c"]
    assert choices == {"net": ["table", "mlp"], "ent_coef": [1.0, 0.3], "game": games}
    assert isinstance(choices["ent_coef"][0], float)


def test_every_combination_is_named_by_what_varies():
    grid = settings_grid(parse_choices(["net=table,mlp", "exploration=1,0.5", "steps=100"]))
    assert list(grid) == [
        f"net={n},exploration={e}" for n in ("table", "mlp") for e in ("1", "0.5")
    ]
    assert {config.steps for config in grid.values()} == {100}
    for given, names in (
        (["exploration=1e-30,0.1"], ["exploration=1e-30", "exploration=0.1"]),
        (["steps=100"], ["steps=100"]),
        ([], ["default"]),
    ):
        assert list(settings_grid(parse_choices(given))) == names


def test_a_sample_of_combinations_is_always_the_same():
    grid = settings_grid(parse_choices(["exploration=0.1,0.2,0.3,0.4,0.5", "steps=10,20"]))
    some = planning.sampled(grid, 4)
    assert len(some) == 4
    assert some == planning.sampled(grid, 4)
    assert list(some) == [name for name in grid if name in some]
    assert list(some) != list(grid)[:4]


def test_no_two_settings_share_a_folder():
    long = "x" * 200
    names = ["n_envs=1,net=mlp", "g(x=1,y=2)", "a/b", "a:b", "a_b", f"{long}1", f"{long}2"]
    config = settings_grid({})["default"]
    folders = [planning.Trial(name, config).folder.removesuffix("/seed-0") for name in names]
    assert folders[:2] == names[:2]
    assert len({*folders}) == len(names)
    assert all("/" not in folder and len(folder) < 140 for folder in folders)


def test_fresh_seeds_are_fresh():
    made = Plan(settings=settings_grid({}), seeds=(3, 8, 5), confirm=1, fresh_seeds=2)
    assert made.fresh_trials() == []
    chosen = planning.replace(made, chosen=("default",))
    assert [trial.config.seed for trial in chosen.fresh_trials()] == [9, 10]


def test_a_plan_is_read_back(tmp_path):
    grid = settings_grid(parse_choices(["steps=1,2"]))
    made = Plan(
        settings=grid,
        seeds=(0, 4),
        confirm=1,
        fresh_seeds=3,
        chosen=("steps=2",),
        imports=("a", "b"),
    )
    made.write(tmp_path)
    assert planning.read_plan(tmp_path) == made
    for wrong in ("", "[]", "{}", '{"format": "kuhn-bridge-sweep", "version": 2}'):
        (tmp_path / planning.PLAN_FILE).write_text(wrong)
        with pytest.raises(BridgeError, match="not a sweep's plan"):
            planning.read_plan(tmp_path)


# Results, from files.


def pretend(folder, figures, **options):
    """A sweep's folder with these NashConvs for each setting, one per seed."""
    count = max(map(len, figures.values()))
    grid = {name: settings_grid({})["default"] for name in figures}
    made = Plan(settings=grid, seeds=tuple(range(count)), **options)
    made.write(folder)
    for trial in made.trials():
        values = figures[trial.setting]
        if trial.config.seed < len(values):
            put(folder / trial.folder, values[trial.config.seed])
    return made


def put(folder, value):
    folder.mkdir(parents=True)
    result = {"nash_conv": value, "nash_conv_last": 1.0, "nash_conv_average": value, "steps": 200}
    (folder / "model.json").write_text(json.dumps(result))
    about = {"cpu_seconds": 2.5, "host": "here", "node": "abc"}
    (folder / "trial.json").write_text(json.dumps(about))
    curve = [Point(0, 0.0, 0.9, 0.9), Point(100, 1.0, 0.5, 0.4), Point(200, 2.0, 1.0, value)]
    (folder / "model.csv").write_text(to_csv(curve))


def test_a_report_summarises_the_seeds_of_each_setting(tmp_path):
    values = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 8.0]
    report = read_results(tmp_path, pretend(tmp_path, {"wild": values, "tame": [0.01, 0.03]}))
    tame, wild = report.chosen_by  # the better one first
    assert (tame.n, wild.n) == (2, 8)
    assert wild.mean == pytest.approx(np.mean(values))
    assert wild.iqm == pytest.approx(np.mean([0.3, 0.4, 0.5, 0.6]))  # without the outlier
    assert (wild.best, wild.worst) == (0.1, 8.0)
    low, high = wild.mean_interval
    assert 0.1 < low < wild.mean < high < 8.0
    assert wild.iqm_interval.high < high
    assert len(report.in_state("missing")) == 6


def test_95_percent_intervals_contain_the_true_mean_about_that_often():
    draws = np.random.default_rng(1).normal(size=(400, 30))
    spans = [interval(sample, np.mean, resamples=999) for sample in draws]
    assert 0.89 < np.mean([low < 0 < high for low, high in spans]) < 0.98
    assert (*interval([0.25]), iqm([0.25])) == (0.25, 0.25, 0.25)  # one seed has no spread


def test_a_setting_with_failures_comes_last(tmp_path):
    made = pretend(tmp_path, {"lucky": [0.001], "sound": [0.1, 0.1]})
    broken = tmp_path / "lucky" / "seed-1"
    broken.mkdir()
    (broken / "failed.json").write_text(json.dumps({"failed": "its worker died (attempts: 4)"}))
    report = read_results(tmp_path, made)
    assert [summary.setting for summary in report.chosen_by] == ["sound", "lucky"]
    text = to_text(report)
    assert "1 of 2" in text
    assert "lucky, seed 1  its worker died (attempts: 4)" in text


def test_a_report_needs_no_ray(tmp_path, monkeypatch, capsys):
    options = {"confirm": 1, "fresh_seeds": 2, "chosen": ("b",)}
    made = pretend(tmp_path, {"a": [0.5, 0.25], "b": [0.125, 0.25]}, **options)
    for trial in made.fresh_trials():
        put(tmp_path / trial.folder, 0.375)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["--report", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "chosen, then confirmed" in text
    assert "0.18750" in text  # on the seeds it was chosen by
    assert "0.37500" in text  # on fresh seeds
    with (tmp_path / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = [(row["setting"], row["seed"], row["purpose"]) for row in rows]
    chosen_by = [(setting, seed, "choose") for setting in "ab" for seed in "01"]
    assert found == [*chosen_by, ("b", "2", "confirm"), ("b", "3", "confirm")]
    wanted = {EXPLORATION, "net", "nash_conv_last", "nash_conv_average", "nash_conv_saved"}
    assert wanted | {"steps", "cpu_seconds", "host"} <= set(rows[0])
    assert rows[0]["nash_conv_saved"] == "0.5"
    stored = json.loads((tmp_path / "sweep.json").read_text())
    assert [row["setting"] for row in stored["settings"]] == ["b", "a"]
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_a_band_is_over_the_better_policies():
    one = [Point(0, 0, 1.0, 1.0), Point(100, 1, 0.5, 0.7)]
    two = [Point(0, 0, 1.0, 1.0), Point(50, 1, 0.9, 0.8), Point(200, 1, 0.9, 0.1)]
    steps, middle, around = band([one, two])
    assert steps.tolist() == [0, 50, 100]  # up to the end of the shortest
    between = 0.8 - 0.7 / 3
    assert middle == pytest.approx([1.0, (0.75 + 0.8) / 2, (0.5 + between) / 2])
    assert around.low == pytest.approx([1.0, 0.75, 0.5])
    assert around.high == pytest.approx([1.0, 0.8, between])


def test_a_picture_keeps_ten_lines_apart(tmp_path, monkeypatch):
    labels: list[str] = []
    plot = Axes.plot

    def noted(self, *args, label, **options):
        labels.append(label)
        return plot(self, *args, label=label, **options)

    monkeypatch.setattr(Axes, "plot", noted)
    one = [Point(0, 0, 1.0, 1.0), Point(100, 1, 0.5, 0.7)]
    groups = {f"net={n}": [one] * (1 + n % 2) for n in range(11)}
    draw_bands(groups, tmp_path / "bands.png")
    assert labels[:2] == ["net=0, 1 seed", "net=1, 2 seeds"]
    assert len(labels) == 10


def test_incomplete_copies_of_curves_are_not_drawn(tmp_path, capsys):
    put(tmp_path / "a" / "seed-0", 0.5)
    put(tmp_path / "empty" / ".seed-0-half", 0.5)
    picture = tmp_path / "bands.png"
    assert curves.main([str(tmp_path / "a"), "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert curves.main([str(tmp_path / "empty")]) == 2
    assert "no learning curve" in capsys.readouterr().err


def test_curves_are_grouped_and_named(tmp_path, monkeypatch, capsys):
    drawn: list[tuple[dict[str, int], Path]] = []

    def draw(groups, out, game=None):
        drawn.append(({name: len(group) for name, group in groups.items()}, out))

    monkeypatch.setattr(curves, "draw_bands", draw)
    monkeypatch.setattr(curves, "draw", draw)
    monkeypatch.chdir(tmp_path)
    pretend(tmp_path, {"a": [0.5, 0.25], "b": [0.125]})
    one, two = (f"a/seed-{seed}/model.csv" for seed in (0, 1))
    band = ["--band", "--out", "all.png"]
    for arguments in (["a", "b"], ["a", one], [one, two, *band], [one, two]):
        assert curves.main(arguments) == 0
    assert drawn == [
        ({"a": 2, "b": 1}, Path("training.png")),
        ({"a": 2, "model": 1}, Path("training.png")),
        ({"all": 2}, Path("all.png")),
        ({one: 3, two: 3}, Path("training.png")),  # points; both files have the same name
    ]
    capsys.readouterr()


def test_the_progress_line_counts_trials(tmp_path):
    made = pretend(tmp_path, {"a": [0.5], "b": [], "c": []})
    shown = list[tuple[int, str]]()
    live = Progress(lambda done, note: shown.append((done, note)))
    live.add_trials(made.trials(), tmp_path)
    for event in (("b", "started"), ("b", "progressed", 100, 0.25), ("c", "failed", 50, 0.5)):
        live.handle(TrialEvent(f"{event[0]}/seed-0", *event[1:]))
    live.handle(TrialEvent("b/seed-0", "ended", 100, 0.25))
    steps = made.trials()[0].config.steps
    best = ", best 0.2500 (b, seed 0)"
    assert shown == [
        (steps, "1 running, 1 done, 0 failed"),
        (steps + 100, f"1 running, 1 done, 0 failed{best}"),
        (steps + 150, f"1 running, 1 done, 1 failed{best}"),
        (2 * steps + 50, f"0 running, 2 done, 1 failed{best}"),
    ]


# Mistakes, reported before anything runs.


@pytest.fixture(scope="module")
def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--set", "momentum=1"], "unknown setting 'momentum'"),
        (["--set", "nett=mlp"], "did you mean 'net'"),
        (["--set", "steps"], "steps=VALUE"),
        (["--set", "steps=1", "--set", "steps=2"], "each setting once"),
        (["--set", "steps=1,1"], "a value is repeated"),
        (["--set", "vf_coef=fast"], "vf_coef=fast: must be a number"),
        (["--set", "steps=1.5"], "steps=1.5: must be a whole number"),
        (["--set", "vf_coef=nan"], "nan"),
        (["--set", "net=table,cnn"], "unknown net 'cnn'"),
        (["--set", "n_envs=0"], "n_envs=0"),
        (["--set", "seed=1"], "seeds are given separately"),
        (
            ["--game", "dark_hex(num_cols=4,num_rows=3)", "--set", "steps=100"],
            "a sweep compares NashConv, which is not measured in dark_hex(num_cols=4,num_rows=3)",
        ),
        (["--seeds", "0"], "seeds 0"),
        (["--seeds", "9-0"], "seeds 9-0"),
        (["--seeds", "a-b"], "seeds a-b"),
        (["--seeds", "1,1"], "a seed is repeated"),
        (["--seeds", "5000000000-5000000001"], "seed=5000000001"),
        (["--trials", "2"], "trials 2: must be 1 to 1"),
        (["--confirm", "2"], "--confirm 2: must be 1 to 1"),
        (["--fresh-seeds", "2"], "requires --confirm"),
        (["--confirm", "1", "--fresh-seeds", "0"], "--fresh-seeds: want at least 1"),
        (["--cpus", "0"], "--cpus: want at least 1"),
        (["--retries", "-1"], "--retries: want at least 0"),
        (["--checkpoint-every", "0"], "--checkpoint-every: want at least 1"),
        (["--resume"], "no sweep"),
        (["--report", "{}/none"], "no sweep"),
        (["--address", "127.0.0.1:{port}"], "no Ray there"),
        (["--address", "ray://127.0.0.1:{port}"], "no Ray there"),
        (["--address", "nonsense"], "no Ray there"),
    ],
)
def test_mistakes_are_one_line_and_start_nothing(tmp_path, closed_port, refused, options, word):
    options = [option.format(tmp_path, port=closed_port) for option in options]
    assert word in refused(main, ["--out", str(tmp_path / "sweep"), "--quiet", *options])
    assert not list(tmp_path.iterdir())


def test_another_service_is_not_a_cluster(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(ray_cluster, "CONNECT_TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        error = refused(main, ["--out", str(tmp_path / "sweep"), "--address", address, "--quiet"])
    assert "another service listens" in error


def test_an_unusable_cluster_leaves_no_new_folder_and_removes_none(tmp_path, monkeypatch):
    def refuse(storage, **options):
        Path(storage).mkdir(parents=True)
        raise UsageError("a node does not see it")

    monkeypatch.setattr(ray_cluster, "connected", lambda *args: nullcontext())
    monkeypatch.setattr(ray_cluster, "require_storage", refuse)
    (tmp_path / "mine").mkdir()
    assert [main(["--out", str(tmp_path / name)]) for name in ("new", "mine")] == [2, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_without_ray_the_error_names_the_package(tmp_path, monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "ray", None)
    error = refused(main, ["--out", str(tmp_path / "sweep"), "--quiet"])
    assert "this needs the package ray; pip install" in error
    assert not list(tmp_path.iterdir())


def test_a_sweep_is_not_overwritten_and_only_the_same_one_is_continued(tmp_path, refused):
    pretend(tmp_path, {"default": [0.5]})
    assert "has a sweep already; add --resume" in refused(main, ["--out", str(tmp_path)])
    for options in (["--set", "steps=3"], ["--seeds", "2"], ["--checkpoint-every", "7"]):
        error = refused(main, ["--out", str(tmp_path), "--resume", *options])
        assert f"{options[0]} differs from" in error


def test_partial_copies_of_a_killed_sweep_are_removed(tmp_path):
    trials = pytest.importorskip("algorithms.sweeps.trials")
    source = tmp_path / "source"
    out = tmp_path / "out"
    for folder in (source, out / ".seed-1-half", out / ".seed-10-half"):
        folder.mkdir(parents=True)
        (folder / "trial.json").write_text("{}")
    trials.copy_results(trials.tune.Checkpoint(str(source)), out / "seed-1")
    assert {path.name for path in out.iterdir()} == {"seed-1", ".seed-10-half"}
    assert (out / "seed-1" / "trial.json").exists()


# On this machine, then on a cluster of two nodes.

SWEPT = "vf_coef"  # of PPO, so the runs are on states
WILD = "1e+300"  # a value with which every training run diverges
ON_STATES = ["--game", "kuhn_poker", "--set", "env=states"]
PLAN = [*ON_STATES, "--set", "steps=98304", "--seeds", "3,5", "--checkpoint-every", "16384"]
BESIDE = {"RAY_worker_niceness": "0"}  # or other tests would take all CPU time
EQUAL = ("setting", "seed", "state", "nash_conv_last", "nash_conv_average", "nash_conv_saved")


# Ray does not close all of its sockets.
sockets_of_ray = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
# Half a minute on an idle machine, minutes on a busy one: a dozen processes have to start.
patient = pytest.mark.timeout(900)


class Nodes:
    """A Ray cluster of two nodes with one core each, as processes of this machine."""

    def __init__(self):
        os.environ.update(ray_cluster.ENVIRONMENT | BESIDE)
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        self.cluster.add_node(num_cpus=1)
        self.address: str = self.cluster.address

    def start(self, out, *options):
        """The command, on this cluster, in a process group of its own."""
        command = [sys.executable, "-m", "algorithms.sweep", "--address", self.address]
        command += ["--out", str(out), *options]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )

    def kill_worker(self, process, out):
        """Kill a worker after it has written some checkpoints."""
        began = time.time()
        stored = out / "ray" / out.name
        early = "*/checkpoint_00000[1-5]"  # of eight
        until(lambda: any(p.stat().st_mtime > began for p in stored.glob(early)), process)
        os.kill(min(self.training()), signal.SIGKILL)

    def training(self):
        """The workers in the middle of a training run, each with the process of its node."""
        nodes = self.cluster.list_all_nodes()
        raylets = {info.process.pid for node in nodes for info in node.all_processes["raylet"]}
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                name = (process / "cmdline").read_bytes()
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent in raylets and name.startswith(b"ray::ImplicitFunc.train"):
                found[int(process.name)] = parent
        return found


def until(condition, process):
    """Wait for something to happen while a process runs."""
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def nodes():
    made = Nodes()
    yield made
    made.cluster.shutdown()


def ended(process):
    """The exit code and the output of a process."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def rows(out):
    document: list[dict[str, Any]] = json.loads((out / "sweep.json").read_text())["trials"]
    return document


def played(model):
    """A model's policy, bit for bit."""
    table: list[list[float]] = load_policy(model).table.tolist()
    return table


def good(out):
    """The trials that ended without failure."""
    return sorted(out.glob("*/seed-*/trial.json"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed sweep on this machine: its folder, exit code and output."""
    out = tmp_path_factory.mktemp("whole") / "some" / "sweep"
    command = [sys.executable, "-m", "algorithms.sweep", "--out", str(out), *PLAN]
    command += f"--set {SWEPT}=0.5,1,{WILD} --confirm 1 --fresh-seeds 1 --cpus 1".split()
    own = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | BESIDE
    done = subprocess.run(
        command, cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=600
    )
    return out, done.returncode, done.stdout, done.stderr


@patient
def test_a_sweep_on_this_machine(whole, tmp_path, capfd):
    out, code, text, error = whole
    assert (code, error) == (1, "")  # one setting fails
    assert "times the ideal" in text
    assert text.count("the run diverged at step") == 2
    trial_rows = rows(out)
    states = {(row[SWEPT], row["seed"]): row["state"] for row in trial_rows}
    chosen_by = [row for row in trial_rows if row["purpose"] == "choose"]
    figures = {0.5: [], 1.0: [], float(WILD): []}
    for row in chosen_by:
        figures[row[SWEPT]].append(row["nash_conv_saved"])
    best = min((0.5, 1.0), key=lambda size: iqm(figures[size]))
    wanted = {(size, seed): "done" for size in (0.5, 1.0) for seed in (3, 5)}
    wanted |= {(float(WILD), seed): "failed" for seed in (3, 5)}
    assert states == wanted | {(best, 6): "done"}

    model = tmp_path / "model.zip"
    alone = ["--game", "kuhn_poker", "--env", "states", "--vf-coef", "1"]
    alone += ["--seed", "5", "--steps", "98304", "--quiet"]
    assert train_ppo.main(["--out", str(model), *alone]) == 0
    assert played(model) == played(out / f"{SWEPT}=1" / "seed-5" / "model.zip")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ray", None)  # no run is left, so Ray is not started
        assert main(["--out", str(out), "--resume", "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["trials"] == trial_rows


@sockets_of_ray
@patient
def test_killed_processes_do_not_change_the_results(nodes, whole, tmp_path):
    out = tmp_path / "broken"
    process = nodes.start(out, *PLAN, "--set", f"{SWEPT}=0.5,1")
    until(lambda: len({*nodes.training().values()}) == 2, process)  # on both nodes
    nodes.kill_worker(process, out)  # another continues from the checkpoint
    until(lambda: good(out), process)
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C in a terminal
    code, text, error = ended(process)
    assert code == 130
    assert "training runs have not ended" in text
    assert error.count("\n") == 1
    assert f"continue with: python -m algorithms.sweep --resume --out {out}" in error
    assert not nodes.training()
    finished = {path: path.stat().st_mtime_ns for path in good(out)}
    assert 0 < len(finished) < 4

    process = nodes.start(out, "--resume", "--retries", "0")
    nodes.kill_worker(process, out)  # its trial is not retried
    code, text, error = ended(process)
    assert (code, error) == (1, "")
    assert text.count("its worker died (attempts: ") == 1
    assert len(good(out)) == 3  # the others have ended

    process = nodes.start(out, "--resume")
    until(nodes.training, process)
    process.kill()  # the command itself
    ended(process)
    while nodes.training():  # Ray stops the runs of a dead command
        time.sleep(0.1)

    process = nodes.start(out, "--resume")
    code, _, error = ended(process)
    assert (code, error) == (0, "")
    undisturbed = [row for row in rows(whole[0]) if row["seed"] in (3, 5) and row[SWEPT] <= 1]
    for row, same in zip(rows(out), undisturbed, strict=True):
        assert [row[name] for name in EQUAL] == [same[name] for name in EQUAL]
    for path in good(out):
        trial = path.parent.relative_to(out)
        assert played(path.parent / "model.zip") == played(whole[0] / trial / "model.zip")
    assert {path: path.stat().st_mtime_ns for path in finished} == finished  # not run again
    assert not [*out.glob("*/.*")]  # no partial copies
