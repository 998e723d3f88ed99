"""`make torture`: damaged files, wrong command lines and killed runs, many times over.

Prints the table of docs/reliability.md. The last column counts what is promised and did not hold:
bad input that raises anything but our own one-line error, a command that ends in a traceback, a
killed run that cannot be resumed to the same end, a damaged checkpoint that is accepted.
"""

import argparse
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from algorithms import nashconv
from algorithms.games import load_game
from algorithms.policies import load_policy
from kuhn_bridge import BridgeError
from tests.algorithms.games.test_efg_reader import CARDS
from tests.algorithms.games.test_efg_reader import damaged as damaged_text

ROOT = Path(__file__).parent.parent
# What one damaged game may take.
GAME_SECONDS = 2
GAME_MIB = 256


class Row:
    """One line of the table: how many were tried, how many were refused, what did not hold."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.tried = 0
        self.refused = 0
        self.failed = list[str]()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a call with bad arguments, or `None` if it raised our own error."""
        self.tried += 1
        try:
            return function(*arguments)
        except BridgeError as error:
            self.refused += 1
            if "\n" in str(error) or len(str(error)) > 600:
                self.failed.append(f"not one short line: {str(error)[:200]!r}")
        except Exception as error:
            self.failed.append(f"{type(error).__name__}: {error}".splitlines()[0][:200])
        return None


def damaged(whole: bytes, draw: random.Random) -> bytes:
    """The bytes with a bit flipped, a part removed, random bytes inserted, or the end cut off."""
    at = draw.randrange(len(whole))
    ways: list[Callable[[], bytes]] = [
        lambda: whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :],
        lambda: whole[:at] + whole[at + draw.randrange(1, 64) :],
        lambda: whole[:at] + draw.randbytes(draw.randrange(1, 64)) + whole[at:],
        lambda: whole[:at],
    ]
    return draw.choice(ways)()


def files(what: str, count: int, path: Path, content: Callable[[], bytes]) -> Row:
    """Read each content as a policy file; what is accepted must be a policy."""
    row = Row(what)
    for _ in range(count):
        path.write_bytes(content())
        policy = row.call(load_policy, str(path))
        if policy is not None and not np.allclose(policy.table.sum(axis=1), 1, atol=1e-5):
            row.failed.append(f"accepted: {policy!r}"[:200])
    return row


def policy_files(count: int, draw: random.Random, folder: Path) -> Row:
    """JSON files with bytes or values changed."""
    text = json.dumps(load_policy("uniform").to_document())
    values = ["1", "-1", "0.5001", "NaN", "1e999", "null", "true", '"x"', "[]", "{}", "9" * 5_000]

    def content() -> bytes:
        value = text.replace("0.5", draw.choice(values), draw.randint(1, 3))
        return draw.choice([damaged(text.encode(), draw), value.encode()])

    return files("policy files with errors", count, folder / "policy.json", content)


def game_files(count: int, draw: random.Random, folder: Path) -> Row:
    """`nashconv` on damaged `.efg` files: exit 2 and one line, or the file is still a game."""
    row = Row(f"damaged `.efg` files, each within {GAME_SECONDS} CPU seconds and {GAME_MIB} MiB")
    load_game("kuhn").save(folder / "kuhn.efg")
    texts = [CARDS, (folder / "kuhn.efg").read_text(encoding="utf-8")]
    path = folder / "damaged.efg"
    for number in range(count):
        text = texts[number % 2]
        if number % 4 < 2:
            path.write_bytes(damaged(text.encode(), draw))
        else:
            path.write_text(damaged_text(text, draw), encoding="utf-8")
        row.tried += 1
        start = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        out = io.StringIO()
        err = io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = nashconv.main(["uniform", "--game", str(path), "--json"])
        except Exception as error:
            row.failed.append(f"{type(error).__name__}: {error}".splitlines()[0][:200])
            continue
        row.refused += code == 2
        if code == 2 and (err.getvalue().count("\n") != 1 or out.getvalue()):
            row.failed.append(f"not one line: {err.getvalue()[:200]!r}")
        if code not in (0, 2):
            row.failed.append(f"exit {code}")
        if time.process_time() - start > GAME_SECONDS:
            row.failed.append(f"{time.process_time() - start:.1f} CPU seconds")
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        if more > GAME_MIB * 1024:
            row.failed.append(f"{more / 1024:.0f} MiB more")
    return row


def model_files(count: int, draw: random.Random, folder: Path) -> Row:
    """Zips damaged as a whole or in a member."""
    from tests.models import members, sound_zip, zipped

    def content() -> bytes:
        name = draw.choice(["data", "policy.pth"])
        parts = members(sound_zip())
        forged = zipped(parts | {name: damaged(parts[name], draw)})
        return damaged(sound_zip(), draw) if draw.random() < 0.3 else forged

    return files("model files, damaged", count, folder / "model.zip", content)


def onnx_files(count: int, draw: random.Random, folder: Path) -> Row:
    """ONNX files damaged anywhere, and graphs that never end."""
    from tests.models import graph, loop

    path = folder / "policy.onnx"
    sound = graph(path).read_bytes()

    def content() -> bytes:
        endless = loop(path, draw.choice(["Max", "Concat"]), draw.choice([60, 2**62]))
        return endless.read_bytes() if draw.random() < 0.1 else damaged(sound, draw)

    return files("ONNX files, damaged or endless", count, path, content)


COMMANDS = {
    "algorithms.nashconv": ["POLICY", "--game", "--json", "--deterministic", "--openspiel"],
    "algorithms.solve": [
        *("--iterations", "--variant", "--game", "--discounts", "--until", "--seed", "--out")
    ],
    "algorithms.simulate": ["POLICY", "POLICY", "--hands", "--seed", "--game", "--json"],
    "algorithms.evaluate": ["POLICY", "--hands", "--seed", "--game", "--json"],
    "algorithms.dominance": ["POLICY", "--max", "--strict", "--game", "--json"],
    "algorithms.export_onnx": ["POLICY", "--out", "--json"],
    "algorithms.curves": ["POLICY", "POLICY", "--out"],
    "algorithms.rps": ["--rounds", "--opponent", "--seed", "--json"],
    "algorithms.train_ppo": [
        *("--game", "--net", "--env", "--recipe", "--init", "--save", "--seed", "--n-envs"),
        *("--n-steps", "--exploration", "--kl", "--width", "--epochs"),
    ],
    "parity.check": ["--only", "--game", "--candidate", "--json"],
}
ALWAYS = {  # the last of repeated options counts: without these a run would take minutes
    "algorithms.train_ppo": ["--steps", "512", "--out", "model.zip", "--quiet"],
    "parity.check": ["--quick"],
}
WORDS = [
    "uniform", "nash:1/3", "nash:9e9999999", "random:1", "random:-1", "best-response", "cfr+:3",
    "kuhn", "leduc_poker", "kuhn_poker(players=3)", "nfg_game", "chess", "no_such_game", "(",
    "0", "1", "-1", "30", "1e22", "nan", "inf", "1e300", "99999999999999999999", "", "\n", "é",
    "/nowhere/x.json", "missing.zip", "missing.onnx", ".", "x" * 300, "mlp", "aec", "usual",
    "rules", "torture.py:KuhnPoker", "json:loads",
]  # fmt: skip


def command_lines(count: int, draw: random.Random, folder: Path) -> Row:
    """Commands with random arguments: exit 0, 1 or 2, and one line if it is 2."""
    row = Row("random command lines")
    script = folder / "commands.py"
    script.write_text(_COMMAND_SCRIPT)
    while row.tried < count:
        lines = []
        for _ in range(min(20, count - row.tried)):
            name = draw.choice(list(COMMANDS))
            line = [name]
            # A few options: of many, one is always wrong, and the others are never read.
            for option in draw.sample(COMMANDS[name], draw.randint(0, 3)):
                line += [draw.choice(WORDS)] if option == "POLICY" else [option, draw.choice(WORDS)]
            lines.append(line + ALWAYS.get(name, []))
        done = subprocess.run(
            [sys.executable, str(script)], input=json.dumps(lines), capture_output=True,
            text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
        )  # fmt: skip
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        row.tried += len(lines)
        row.refused += sum(answer["code"] == 2 for answer in answers)
        if len(answers) != len(lines):
            row.failed.append(f"died at {lines[len(answers)]}: {done.stderr[-200:]!r}")
        row.failed += [str(answer) for answer in answers if answer["fault"]]
    return row


_COMMAND_SCRIPT = """
import contextlib, importlib, io, json, signal, sys

def late(*_):
    raise TimeoutError

signal.signal(signal.SIGALRM, late)
for line in json.loads(sys.stdin.read()):
    out, err, fault, code = io.StringIO(), io.StringIO(), "", None
    signal.alarm(60)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = importlib.import_module(line[0]).main(line[1:])
    except SystemExit as exit:
        code = exit.code or 0
    except TimeoutError:
        code = 0  # still at work: the command line is valid
    except BaseException as error:
        fault = f"{type(error).__name__}: {error}"
    signal.alarm(0)
    printed = err.getvalue()
    if not fault and code not in (0, 1, 2):
        fault = f"exit {code}"
    if not fault and code == 2 and printed.count("\\n") != 1:
        fault = f"not one line: {printed[-300:]!r}"
    print(json.dumps({"line": line, "code": code, "fault": fault}), flush=True)
"""

TRAIN = ["--steps", "120000", "--n-envs", "256", "--checkpoint-every", "2000", "--quiet"]


def _started(folder: Path, *options: str) -> int:
    """The ID of a process that trains, forked from this one, which has imported torch already."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        from algorithms.train_ppo import main as train

        os._exit(train(["--out", str(folder / "model.zip"), *options]))
    return child


def _exit_code(child: int) -> int | None:
    """The exit code of a process, `None` while it runs."""
    done, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _policy(folder: Path) -> Any:
    return json.loads((folder / "model.json").read_text())["policy"]


def kills(count: int, draw: random.Random, folder: Path) -> Row:
    """A training run killed at random moments and resumed each time ends with the same policy."""
    import algorithms.self_play.training_run  # noqa: F401  # once, before the forks

    row = Row("kills of a training run, each resumed")
    os.waitpid(_started(folder, *TRAIN), 0)
    wanted = _policy(folder)
    while row.tried < count:
        out = Path(tempfile.mkdtemp(dir=folder))
        options = TRAIN
        code = None
        while code is None:
            child = _started(out, *options)
            checkpoint = out / "model.ckpt"
            while code is None and not checkpoint.exists():
                time.sleep(0.002)
                code = _exit_code(child)
            until = time.monotonic() + draw.random()
            while code is None and (time.monotonic() < until or row.tried >= count):
                time.sleep(0.002)
                code = _exit_code(child)
            if code is None:
                _kill(child)
                options = ["--resume", "--quiet", "--checkpoint-every", "2000"]
                row.tried += 1
                if not checkpoint.exists():  # the run was over: it removes the checkpoint last
                    code = 0
        if code:
            row.failed.append(f"could not resume: exit {code}")
        elif _policy(out) != wanted:
            row.failed.append("another policy at the end")
    return row


def flipped_bits(count: int, draw: random.Random, folder: Path) -> Row:
    """Every flipped bit of a checkpoint is refused."""
    from algorithms.self_play.training_run import read_checkpoint

    row = Row("bits flipped in checkpoints")
    path = folder / "model.ckpt"
    child = _started(folder, *TRAIN)
    while not path.exists():
        time.sleep(0.002)
    _kill(child)
    whole = path.read_bytes()
    for _ in range(count):
        content = bytearray(whole)
        content[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        if row.call(read_checkpoint, path) is not None:
            row.failed.append("a damaged checkpoint was accepted")
    return row


ROWS: dict[str, tuple[Callable[[int, random.Random, Path], Row], int]] = {
    "policies": (policy_files, 10_000),
    "games": (game_files, 10_000),
    "models": (model_files, 300),
    "onnx": (onnx_files, 300),
    "commands": (command_lines, 300),
    "bits": (flipped_bits, 1_000),
    "kills": (kills, 50),
}


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit 1 if anything that is promised did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=main.__doc__)
    parser.add_argument("only", nargs="*", help=f"some of {', '.join(ROWS)} (all)")
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers (1)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    print("| what | tried | refused in one line | lost or accepted wrongly | CPU seconds |")
    print("|---|---|---|---|---|")
    failed = []
    for name in options.only or ROWS:
        body, full = ROWS[name]
        start = sum(os.times()[:4])
        with tempfile.TemporaryDirectory() as folder:
            count = max(1, round(full * options.scale))
            row = body(count, random.Random(options.seed), Path(folder))
        seconds = sum(os.times()[:4]) - start
        print(
            f"| {row.what} | {row.tried:,} | {row.refused:,} | {len(row.failed)} | {seconds:.0f} |",
            flush=True,
        )
        failed += row.failed
    for case in failed[:40]:
        print(case, file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
