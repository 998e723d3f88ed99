"""Sweeps: what is run, that nothing that dies changes the results, and what the results say."""

from __future__ import annotations

import csv
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from algorithms import curves, sweep, train_ppo
from algorithms.learning.bands import band, draw_bands, interval, iqm
from algorithms.learning.curve import Point, to_csv
from algorithms.learning.sweeping import plan as planning
from algorithms.learning.sweeping.cluster import ENVIRONMENT
from algorithms.learning.sweeping.driving import Live
from algorithms.learning.sweeping.plan import Plan, parse_choices, parse_seeds, settings_grid
from algorithms.learning.sweeping.results import read_report, to_text
from algorithms.policies import load_policy
from algorithms.support.errors import UsageError
from algorithms.support.garbage import OBJECTS
from algorithms.sweep import main
from kuhn_bridge import BridgeError

ROOT = Path(sweep.__file__).parents[1]

# What is planned.


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0-3", (0, 1, 2, 3)),
        ("0,3,7", (0, 3, 7)),
        ("3", (0, 1, 2)),
        ("5-5", (5,)),
        ("1-2,9", (1, 2, 9)),
    ],
)
def test_seeds_are_a_range_a_list_or_a_count(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


def test_values_have_the_type_of_their_setting() -> None:
    choices = parse_choices(["net=table,mlp", "lr=1,0.3", "n-envs=64"])
    assert choices == {"net": ["table", "mlp"], "lr": [1.0, 0.3], "n_envs": [64]}
    assert isinstance(choices["lr"][0], float)


def test_commas_in_brackets_are_part_of_a_value() -> None:
    assert planning._parts("kuhn,a(x=1,g=b(y=2,z=3)),c") == ["kuhn", "a(x=1,g=b(y=2,z=3))", "c"]


def test_every_combination_is_named_by_what_varies() -> None:
    grid = settings_grid(parse_choices(["net=table,mlp", "lr=1,0.5", "steps=100"]))
    assert list(grid) == [f"net={n},lr={r}" for n in ("table", "mlp") for r in ("1", "0.5")]
    assert {config.steps for config in grid.values()} == {100}
    assert grid["net=mlp,lr=1"].vf_coef == 0.5  # what the network wants comes with it
    assert list(settings_grid(parse_choices(["lr=1e30,0.1"]))) == ["lr=1e+30", "lr=0.1"]
    assert list(settings_grid({})) == ["default"]
    assert list(settings_grid(parse_choices(["steps=100"]))) == ["steps=100"]


def test_some_combinations_are_drawn_and_always_the_same() -> None:
    grid = settings_grid(parse_choices(["lr=1,2,3,4,5", "magnet=0,0.1"]))
    some = planning.sampled(grid, 4)
    assert len(some) == 4
    assert some == planning.sampled(grid, 4)
    assert list(some) == [name for name in grid if name in some]
    assert list(some) != list(grid)[:4]


def test_no_two_settings_share_a_folder() -> None:
    long = "x" * 200
    names = ["n_envs=1,net=mlp", "g(x=1,y=2)", "a/b", "a:b", "a_b", f"{long}1", f"{long}2"]
    folders = [planning.folder_name(name) for name in names]
    assert folders[:2] == names[:2]
    assert len({*folders}) == len(names)
    assert all("/" not in folder and len(folder) < 140 for folder in folders)


def test_fresh_seeds_are_fresh() -> None:
    made = Plan(settings=settings_grid({}), seeds=(3, 8, 5), confirm=1, fresh_seeds=2)
    assert made.fresh_trials() == []
    chosen = planning.replace(made, chosen=("default",))
    assert [trial.config.seed for trial in chosen.fresh_trials()] == [9, 10]


def test_a_plan_is_read_back(tmp_path: Path) -> None:
    grid = settings_grid(parse_choices(["lr=1,2"]))
    made = Plan(settings=grid, seeds=(0, 4), confirm=1, fresh_seeds=3, chosen=("lr=2",))
    made.write(tmp_path)
    assert planning.read_plan(tmp_path) == made
    for wrong in ("", "[]", "{}", '{"format": "kuhn-bridge-sweep", "version": 2}'):
        (tmp_path / planning.FILE).write_text(wrong)
        with pytest.raises(BridgeError, match="not a sweep's plan"):
            planning.read_plan(tmp_path)


# What came out, from files alone.


def pretend(folder: Path, figures: dict[str, list[float]], **options: Any) -> Plan:
    """A sweep's folder with these NashConvs for each setting, one a seed."""
    count = max(map(len, figures.values()))
    grid = {name: settings_grid({})["default"] for name in figures}
    made = Plan(settings=grid, seeds=tuple(range(count)), **options)
    made.write(folder)
    for trial in made.trials():
        values = figures[trial.setting]
        if trial.config.seed < len(values):
            put(folder / trial.folder, values[trial.config.seed])
    return made


def put(folder: Path, value: float) -> None:
    folder.mkdir(parents=True)
    result = {"nash_conv": value, "nash_conv_last": 1.0, "nash_conv_average": value, "steps": 200}
    (folder / "model.json").write_text(json.dumps(result))
    about = {"cpu_seconds": 2.5, "host": "here", "node": "abc"}
    (folder / "trial.json").write_text(json.dumps(about))
    curve = [Point(0, 0.0, 0.9, 0.9), Point(100, 1.0, 0.5, 0.4), Point(200, 2.0, 1.0, value)]
    (folder / "model.csv").write_text(to_csv(curve))


def test_a_table_says_what_the_seeds_say(tmp_path: Path) -> None:
    values = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 8.0]
    report = read_report(tmp_path, pretend(tmp_path, {"wild": values, "tame": [0.01, 0.03]}))
    tame, wild = report.chosen_by  # the better one first
    assert (tame.n, wild.n) == (2, 8)
    assert wild.mean == pytest.approx(np.mean(values))
    assert wild.iqm == pytest.approx(np.mean([0.3, 0.4, 0.5, 0.6]))  # the outlier has no say
    assert (wild.best, wild.worst) == (0.1, 8.0)
    low, high = wild.mean_interval
    assert 0.1 < low < wild.mean < high < 8.0
    assert wild.iqm_interval.high < high
    assert len(report.missing) == 6


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    draws = np.random.default_rng(1).normal(size=(400, 30))
    spans = [interval(sample, np.mean, resamples=999) for sample in draws]
    assert 0.89 < np.mean([low < 0 < high for low, high in spans]) < 0.98


def test_figures_and_intervals_are_scipys() -> None:
    from scipy.stats import bootstrap, trim_mean

    generator = np.random.default_rng(2)
    for shape in ((4,), (11,), (10, 7)):
        data = generator.random(shape)
        middle = partial(trim_mean, proportiontocut=0.25)
        np.testing.assert_allclose(iqm(data), middle(data, axis=0), rtol=1e-13)
        options: dict[str, Any] = {"n_resamples": 999, "method": "percentile", "axis": 0}
        theirs = bootstrap(
            (data,), middle, vectorized=True, rng=np.random.default_rng(0), **options
        )
        wanted = theirs.confidence_interval
        np.testing.assert_allclose(interval(data, resamples=999), wanted, rtol=1e-13)


def test_one_seed_has_no_spread() -> None:
    assert interval([0.25]) == (0.25, 0.25)
    assert iqm([0.25]) == 0.25


def test_a_setting_that_fails_is_not_the_best(tmp_path: Path) -> None:
    made = pretend(tmp_path, {"lucky": [0.001], "sound": [0.1, 0.1]})
    broken = tmp_path / "lucky" / "seed-1"
    broken.mkdir()
    (broken / "failed.json").write_text(json.dumps({"failed": "its worker died (attempts: 4)"}))
    report = read_report(tmp_path, made)
    assert [summary.setting for summary in report.chosen_by] == ["sound", "lucky"]
    said = to_text(report)
    assert "1 of 2" in said
    assert "lucky, seed 1  its worker died (attempts: 4)" in said


def test_a_report_needs_no_ray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"confirm": 1, "fresh_seeds": 2, "chosen": ("b",)}
    made = pretend(tmp_path, {"a": [0.5, 0.25], "b": [0.125, 0.25]}, **options)
    for trial in made.fresh_trials():
        put(tmp_path / trial.folder, 0.375)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["--report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "chosen, then confirmed" in said
    assert "0.18750" in said  # what it was chosen by
    assert "0.37500" in said  # what it is worth
    with (tmp_path / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["setting"], row["seed"], row["purpose"]) for row in rows] == [
        ("a", "0", "choose"),
        ("a", "1", "choose"),
        ("b", "0", "choose"),
        ("b", "1", "choose"),
        ("b", "2", "confirm"),
        ("b", "3", "confirm"),
    ]
    wanted = {"lr", "net", "nash_conv_last", "nash_conv_average", "nash_conv_saved"}
    assert wanted | {"steps", "cpu_seconds", "host"} <= set(rows[0])
    assert rows[0]["nash_conv_saved"] == "0.5"
    stored = json.loads((tmp_path / "sweep.json").read_text())
    assert [row["setting"] for row in stored["settings"]] == ["b", "a"]
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_a_band_is_of_the_policies_that_would_be_saved() -> None:
    one = [Point(0, 0, 1.0, 1.0), Point(100, 1, 0.5, 0.7)]
    two = [Point(0, 0, 1.0, 1.0), Point(50, 1, 0.9, 0.8), Point(200, 1, 0.9, 0.1)]
    made = band([one, two])
    assert made.steps.tolist() == [0, 50, 100]  # as far as all of them go
    between = 0.8 - 0.7 / 3
    assert made.middle == pytest.approx([1.0, (0.75 + 0.8) / 2, (0.5 + between) / 2])
    assert made.interval.low == pytest.approx([1.0, 0.75, 0.5])
    assert made.interval.high == pytest.approx([1.0, 0.8, between])


def test_a_picture_keeps_ten_lines_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels: list[str] = []
    plot = Axes.plot

    def noted(self: Axes, *args: Any, label: str, **options: Any) -> Any:
        labels.append(label)
        return plot(self, *args, label=label, **options)

    monkeypatch.setattr(Axes, "plot", noted)
    one = [Point(0, 0, 1.0, 1.0), Point(100, 1, 0.5, 0.7)]
    groups = {f"lr={n}": [one] * (1 + n % 2) for n in range(11)}
    draw_bands(groups, tmp_path / "bands.png")
    assert labels[:2] == ["lr=0, 1 seed", "lr=1, 2 seeds"]
    assert len(labels) == 10


def test_curves_draws_folders_as_bands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(tmp_path, {"a": [0.5, 0.25], "b": [0.125, 0.25]})
    picture = tmp_path / "bands.png"
    folders = [str(tmp_path / name) for name in "ab"]
    assert curves.main([*folders, "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    files = [str(tmp_path / "a" / f"seed-{seed}" / "model.csv") for seed in (0, 1)]
    assert curves.main([*files, "--band", "--out", str(picture)]) == 0
    half = tmp_path / "empty" / ".seed-0-half"
    half.mkdir(parents=True)
    (half / "model.csv").write_text(Path(files[0]).read_text())
    capsys.readouterr()
    assert curves.main([str(tmp_path / "empty")]) == 2
    assert "no learning curve" in capsys.readouterr().err


def test_curves_are_grouped_and_named_as_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn: list[tuple[dict[str, int], Path]] = []

    def draw(groups: dict[str, list[Any]], out: Path, game: Any = None) -> None:
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
        ({one: 3, two: 3}, Path("training.png")),  # points; one name would be the other's
    ]
    capsys.readouterr()


def test_the_live_line_counts(tmp_path: Path) -> None:
    from algorithms.learning.sweeping.running import News

    made = pretend(tmp_path, {"a": [0.5], "b": [], "c": []})
    shown: list[tuple[int, str]] = []
    live = Live(lambda done, note: shown.append((done, note)))
    assert live.expect(made.trials(), tmp_path) == 2
    steps = made.trials()[0].config.steps
    live.hear(News("b/seed-0", "started"))
    assert shown[-1] == (steps, "1 running, 1 done, 0 failed")
    live.hear(News("b/seed-0", "moved", 100, 0.25))
    assert shown[-1] == (steps + 100, "1 running, 1 done, 0 failed, best 0.2500 (b, seed 0)")
    live.hear(News("c/seed-0", "failed", 50, 0.5))
    live.hear(News("b/seed-0", "ended", 100, 0.25))
    assert shown[-1] == (2 * steps + 50, "0 running, 2 done, 1 failed, best 0.2500 (b, seed 0)")


# What is refused, before anything runs.


@pytest.fixture(scope="module")
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--set", "learning_rate=1"], "unknown setting 'learning_rate'"),
        (["--set", "nett=mlp"], "did you mean 'net'"),
        (["--set", "lr"], "lr=VALUE"),
        (["--set", "lr=1", "--set", "lr=2"], "each setting once"),
        (["--set", "lr=1,1"], "twice"),
        (["--set", "lr=fast"], "lr=fast: want a number"),
        (["--set", "steps=1.5"], "steps=1.5: want a whole number"),
        (["--set", "lr=nan"], "--lr nan"),
        (["--set", "net=table,cnn"], "unknown net 'cnn'"),
        (["--set", "magnet=0.1,2"], "0 to 1"),
        (["--set", "seed=1"], "--seeds"),
        (["--seeds", "0"], "--seeds 0"),
        (["--seeds", "9-0"], "--seeds 9-0"),
        (["--seeds", "a-b"], "--seeds a-b"),
        (["--seeds", "1,1"], "twice"),
        (["--seeds", "5000000000-5000000001"], "--seed 5000000001"),
        (["--trials", "2"], "--trials 2: want 1 to 1"),
        (["--confirm", "2"], "--confirm 2: want 1 to 1"),
        (["--fresh-seeds", "2"], "requires --confirm"),
        (["--confirm", "1", "--fresh-seeds", "0"], "--fresh-seeds 0"),
        (["--cpus", "0"], "--cpus 0"),
        (["--retries", "-1"], "--retries -1"),
        (["--checkpoint-every", "0"], "--checkpoint-every 0"),
        (["--resume"], "no sweep"),
        (["--report", "{}/none"], "no sweep"),
        (["--address", "127.0.0.1:{port}"], "no Ray there"),
        (["--address", "ray://127.0.0.1:{port}"], "no Ray there"),
        (["--address", "nonsense"], "no Ray there"),
    ],
)
def test_mistakes_are_one_line_and_start_nothing(
    tmp_path: Path,
    closed_port: int,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    word: str,
) -> None:
    options = [option.format(tmp_path, port=closed_port) for option in options]
    assert main(["--out", str(tmp_path / "sweep"), *options]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_port_of_something_else_is_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from algorithms.learning.sweeping import cluster

    monkeypatch.setattr(cluster, "REACH", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert main(["--out", str(tmp_path / "sweep"), "--address", address]) == 2
    assert "something else answers" in capsys.readouterr().err


def test_a_refused_cluster_leaves_no_folder_and_takes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from algorithms.learning.sweeping import cluster

    def refuse(storage: str, **options: Any) -> None:
        Path(storage).mkdir(parents=True)
        raise UsageError("a node does not reach it")

    monkeypatch.setattr(cluster, "connected", lambda *args: nullcontext())
    monkeypatch.setattr(cluster, "require_storage", refuse)
    assert main(["--out", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
    (tmp_path / "mine").mkdir()
    assert main(["--out", str(tmp_path / "mine")]) == 2
    assert (tmp_path / "mine").exists()


def test_without_ray_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["--out", str(tmp_path / "sweep")]) == 2
    assert "this needs the package ray; pip install" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_sweep_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(tmp_path, {"default": [0.5]})
    assert main(["--out", str(tmp_path)]) == 2
    assert "has a sweep; --resume continues it" in capsys.readouterr().err


def test_another_sweep_is_not_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(tmp_path, {"default": [0.5]})
    for options in (["--set", "lr=3"], ["--seeds", "2"], ["--checkpoint-every", "7"]):
        assert main(["--out", str(tmp_path), "--resume", *options]) == 2
        assert f"{options[0]} is not as" in capsys.readouterr().err


def test_what_a_killed_sweep_was_copying_is_removed(tmp_path: Path) -> None:
    running = pytest.importorskip("algorithms.learning.sweeping.running")
    source, out = tmp_path / "source", tmp_path / "out"
    for folder in (source, out / ".seed-1-half", out / ".seed-10-half"):
        folder.mkdir(parents=True)
        (folder / "trial.json").write_text("{}")
    running.bring_home(running.tune.Checkpoint(str(source)), out / "seed-1")
    assert {path.name for path in out.iterdir()} == {"seed-1", ".seed-10-half"}
    assert (out / "seed-1" / "trial.json").exists()


def test_workers_search_for_garbage_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    running = pytest.importorskip("algorithms.learning.sweeping.running")
    seen: list[Any] = []
    monkeypatch.setattr(gc, "set_threshold", lambda *numbers: seen.append(numbers))
    running._run_trial({"task": {"folder": "done"}}, finished=frozenset({"done"}))
    assert seen[0] == (OBJECTS, *gc.get_threshold()[1:])


# On this machine, then on a cluster of two nodes: what dies changes nothing.

WILD = "1e+30"  # a step that no training survives
PLAN = ["--set", "steps=800000", "--seeds", "3,5", "--checkpoint-every", "100000"]
BESIDE = {"RAY_worker_niceness": "0"}  # or other tests would leave Ray's workers no time
EQUAL = ("setting", "seed", "state", "nash_conv_last", "nash_conv_average", "nash_conv_saved")


# Ray leaves some of its sockets to the garbage collector.
sockets_of_ray = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
# Half a minute alone, but a dozen processes have to start: minutes on a machine that is busy.
patient = pytest.mark.timeout(900)


class Nodes:
    """A Ray cluster of two nodes with one core each, as processes of this machine."""

    def __init__(self) -> None:
        os.environ.update(ENVIRONMENT | BESIDE)
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        self.cluster.add_node(num_cpus=1)
        self.address: str = self.cluster.address

    def start(self, out: Path, *options: str) -> subprocess.Popen[str]:
        """The command, on this cluster, in a process group of its own."""
        command = [sys.executable, "-m", "algorithms.sweep", "--address", self.address]
        command += ["--out", str(out), *options]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )

    def kill_worker(self, process: subprocess.Popen[str], out: Path) -> None:
        """Kill a worker when one has gone some way."""
        began, stored = time.time(), out / "ray" / out.name
        early = "*/checkpoint_00000[1-5]"  # of eight
        until(lambda: any(p.stat().st_mtime > began for p in stored.glob(early)), process)
        os.kill(min(self.training()), signal.SIGKILL)

    def training(self) -> dict[int, int]:
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


def until(condition: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    """Wait for something to happen while a process runs."""
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    yield made
    made.cluster.shutdown()


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How a process ended, and what it said."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def rows(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "sweep.json").read_text())["trials"]
    return found


def played(model: Path) -> list[list[float]]:
    """What a model plays, to the last bit."""
    table: list[list[float]] = load_policy(model).table.tolist()
    return table


def good(out: Path) -> list[Path]:
    """The trials that have ended well."""
    return sorted(out.glob("*/seed-*/trial.json"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    """An undisturbed sweep on this machine: its folder, how it ended, and what it said."""
    out = tmp_path_factory.mktemp("whole") / "some" / "sweep"
    command = [sys.executable, "-m", "algorithms.sweep", "--out", str(out), *PLAN]
    command += ["--set", f"lr=0.5,1,{WILD}", "--confirm", "1", "--fresh-seeds", "1", "--cpus", "1"]
    own = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | BESIDE
    done = subprocess.run(
        command, cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=600
    )
    return out, done.returncode, done.stdout, done.stderr


@patient
def test_a_sweep_on_this_machine(
    whole: tuple[Path, int, str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, code, said, chatter = whole
    assert (code, chatter) == (1, "")  # one setting fails
    assert "times the ideal" in said
    assert said.count("the training run diverged at step") == 2
    found = rows(out)
    states = {(row["lr"], row["seed"]): row["state"] for row in found}
    chosen_by = [row for row in found if row["purpose"] == "choose"]
    best = min((0.5, 1.0), key=lambda lr: iqm(figures(chosen_by, lr)))
    wanted = {(lr, seed): "done" for lr in (0.5, 1.0) for seed in (3, 5)}
    wanted |= {(float(WILD), seed): "failed" for seed in (3, 5)}
    assert states == wanted | {(best, 6): "done"}

    model = tmp_path / "model.zip"
    alone = ["--seed", "5", "--steps", "800000", "--quiet"]
    assert train_ppo.main(["--out", str(model), *alone]) == 0
    assert played(model) == played(out / "lr=1" / "seed-5" / "model.zip")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ray", None)  # nothing is left to do, so nothing is started
        assert main(["--out", str(out), "--resume", "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["trials"] == found


def figures(found: list[dict[str, Any]], lr: float) -> list[float]:
    return [row["nash_conv_saved"] for row in found if row["lr"] == lr]


@sockets_of_ray
@patient
def test_what_dies_changes_nothing(
    nodes: Nodes, whole: tuple[Path, int, str, str], tmp_path: Path
) -> None:
    out = tmp_path / "broken"
    process = nodes.start(out, *PLAN, "--set", "lr=0.5,1")
    until(lambda: len({*nodes.training().values()}) == 2, process)  # both nodes have their share
    nodes.kill_worker(process, out)  # another goes on from the checkpoint
    until(lambda: good(out), process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    code, said, error = ended(process)
    assert code == 130
    assert "training runs have not ended" in said
    assert error.count("\n") == 1
    assert f"continue with: python -m algorithms.sweep --resume --out {out}" in error
    assert not nodes.training()
    kept = {path: path.stat().st_mtime_ns for path in good(out)}
    assert 0 < len(kept) < 4

    process = nodes.start(out, "--resume", "--retries", "0")
    nodes.kill_worker(process, out)  # its trial has no second chance
    code, said, chatter = ended(process)
    assert (code, chatter) == (1, "")
    assert said.count("its worker died (attempts: ") == 1
    assert len(good(out)) == 3  # the others still count

    process = nodes.start(out, "--resume")
    until(nodes.training, process)
    process.kill()  # what drives them all
    ended(process)
    while nodes.training():  # Ray ends what nobody waits for
        time.sleep(0.1)

    process = nodes.start(out, "--resume")
    code, said, chatter = ended(process)
    assert (code, chatter) == (0, "")
    undisturbed = [row for row in rows(whole[0]) if row["seed"] in (3, 5) and row["lr"] <= 1]
    assert [[row[name] for name in EQUAL] for row in rows(out)] == [
        [row[name] for name in EQUAL] for row in undisturbed
    ]
    for path in good(out):
        trial = path.parent.relative_to(out)
        assert played(path.parent / "model.zip") == played(whole[0] / trial / "model.zip")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # those were not run again
    assert not [*out.glob("*/.*")]  # nor is anything left half copied
