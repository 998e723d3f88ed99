"""`make torture`: everything that can be handed in wrong, handed in wrong, many times over.

Prints the table of docs/reliability.md. A thing is lost or accepted wrongly when bad input raises
anything but our own one-line error, when a command dies of it, when a killed run cannot go on to
the same end, or when a damaged checkpoint is believed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.policies import load_policy
from kuhn_bridge import (
    BridgeError,
    KuhnPoker,
    Policy,
    State,
    bridge,
    from_openspiel,
    rules,
    to_openspiel,
)
from kuhn_bridge.state import nodes

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden"


class Row:
    """One line of the table: how many were tried, how many were refused, what went wrong."""

    def __init__(self, what: str) -> None:
        self.what, self.tried, self.refused, self.wrong = what, 0, 0, list[str]()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call with anything: an answer or our own error is right, anything else is wrong."""
        self.tried += 1
        try:
            return function(*arguments)
        except BridgeError as error:
            self.refused += 1
            if "\n" in str(error) or len(str(error)) > 600:
                self.wrong.append(f"{function.__name__}: a long story: {str(error)[:200]!r}")
        except Exception as error:
            shown = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            self.wrong.append(f"{getattr(function, '__name__', function)}: {shown}")
        return None


def junk(draw: random.Random, depth: int = 0) -> Any:
    """A value of any kind."""
    kinds: list[Callable[[], Any]] = [
        lambda: draw.randint(-3, 5),
        lambda: draw.choice([10**400, -(10**400), 2**63, 10**5000]),
        lambda: draw.choice([0.5, -0.0, 1.5, float("nan"), float("inf"), 1e308, 1j]),
        lambda: draw.choice([None, True, False, ..., object(), int, NotImplemented]),
        lambda: "".join(draw.choices("pbJQK012 \n\0é", k=draw.randint(0, 5))),
        lambda: draw.choice(["check", "bet", "call", "fold", "2pb", "player_0", "CHECK_OR_CALL"]),
        lambda: draw.choice(list(rules.Action) + list(rules.Card) + list(rules.Phase)),
        lambda: bytes(draw.choices(range(256), k=draw.randint(0, 4))),
        lambda: draw.choice([np.int64(1), np.float32(0.5), np.bool_(True), np.nan, np.uint8(2)]),
        lambda: np.array(draw.choices(range(3), k=draw.randint(0, 3))),
        lambda: np.zeros((draw.randint(0, 12), 3)),
    ]
    if depth < 2:
        kinds += [
            lambda: [junk(draw, depth + 1) for _ in range(draw.randint(0, 5))],
            lambda: tuple(junk(draw, depth + 1) for _ in range(draw.randint(0, 3))),
            lambda: {draw.choice(bridge.INFORMATION_STATES): junk(draw, depth + 1)},
            lambda: iter(range(draw.randint(0, 5))),
            lambda: draw.choice([range(10**9), range(10**30)]),
        ]
    return draw.choice(kinds)()


def core(count: int, draw: random.Random) -> Row:
    """Calls of the core and the bridge with anything; the shared states stay as they were."""
    row, book = Row("calls of the core with anything"), KuhnPoker()
    states = list(nodes())
    before = [(s.cards, s.letters, s.returns, s.legal_actions, s.mask(0).tobytes()) for s in states]
    one: list[Callable[..., Any]] = [
        rules.as_card, rules.as_deal, rules.as_action, rules.as_seat, rules.as_seed, rules.betting,
        bridge.words_to_letters, bridge.letters_to_words, bridge.actions_to_letters,
        bridge.letters_to_actions, bridge.state_from_openspiel, bridge.parse_information_state,
        book.is_terminal, book.get_current_player,
    ]  # fmt: skip
    two: list[Callable[..., Any]] = [
        to_openspiel, from_openspiel, State.new, book.get_payoff, bridge.information_state, State,
    ]  # fmt: skip
    some = [junk(draw) for _ in range(max(100, count // 10))]  # making it takes longest
    while row.tried < count:
        row.call(draw.choice(one), draw.choice(some))
        row.call(draw.choice(two), draw.choice(some), draw.choice(some))
        state = draw.choice(states)
        row.call(draw.choice([state.act, state.observe, state.mask]), draw.choice(some))
    after = [(s.cards, s.letters, s.returns, s.legal_actions, s.mask(0).tobytes()) for s in states]
    if before != after:
        row.wrong.append("a shared state was changed")
    return row


def policies(count: int, draw: random.Random) -> Row:
    """Tables, JSON and percentages with an error in them; what is accepted is a policy."""
    row = Row("policies, tables and JSON with errors in them")
    sound = Policy.uniform("kuhn")
    text = sound.to_json()
    while row.tried < count:
        table = sound.table.astype(object)
        table[draw.randrange(12), draw.randrange(3)] = junk(draw, 2)
        data = sound.to_dict()
        data[draw.choice(bridge.INFORMATION_STATES)] = draw.choice(
            [junk(draw), {"BET": junk(draw)}]
        )
        at = draw.randrange(len(text))
        broken = text[:at] + draw.choice(["", '"', "}", "9", "e9", "-", "\0"]) + text[at + 1 :]
        for made in (
            row.call(Policy, "kuhn", table.tolist()),
            row.call(Policy.from_document, data),
            row.call(Policy.from_document, broken),
            row.call(Policy.from_percentages, junk(draw)),
        ):
            if made is not None and not np.allclose(made.table.sum(axis=1), 1, atol=1e-5):
                row.wrong.append(f"accepted: {made!r}"[:200])
    return row


def damaged(whole: bytes, draw: random.Random) -> bytes:
    """The bytes with one of: a bit flipped, a part cut out, junk put in, an end cut off."""
    at = draw.randrange(len(whole))
    ways: list[Callable[[], bytes]] = [
        lambda: whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :],
        lambda: whole[:at] + whole[at + draw.randrange(1, 64) :],
        lambda: whole[:at] + draw.randbytes(draw.randrange(1, 64)) + whole[at:],
        lambda: whole[:at],
    ]
    return draw.choice(ways)()


def model_files(count: int, draw: random.Random, folder: Path) -> Row:
    """Zips damaged as a whole, in a member, or inside policy.pth."""
    from algorithms.policies import sb3

    row, sources = Row("model files, damaged or forged"), [*GOLDEN.glob("*.zip")]
    sound = [sb3.load_policy(path) for path in sources]
    while row.tried < count:
        which = draw.randrange(len(sources))
        content = sources[which].read_bytes()
        if draw.random() < 0.3:
            content = damaged(content, draw)
        else:
            with zipfile.ZipFile(io.BytesIO(content)) as old:
                members = {name: old.read(name) for name in old.namelist()}
            name = draw.choice(["data", "policy.pth"])
            members[name] = damaged(members[name], draw)
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w") as new:
                for member, data in members.items():
                    new.writestr(member, data)
            content = file.getvalue()
        path = folder / "model.zip"
        path.write_bytes(content)
        made = row.call(sb3.load_policy, path)
        # A bit of a weight may be another weight: that is a policy, if not the same.
        if made is not None and made.table.shape != sound[which].table.shape:
            row.wrong.append("a table of another shape")
    return row


def onnx_files(count: int, draw: random.Random, folder: Path) -> Row:
    """ONNX files damaged anywhere, and graphs that never end."""
    from onnx import helper

    from algorithms.games import kuhn
    from algorithms.policies import onnx as onnx_policy
    from tests.test_strangers import graph, loop

    kuhn()
    row = Row("ONNX files, damaged or endless")
    sound = graph(
        folder / "sound.onnx", helper.make_node("Identity", ["raw"], ["out"])
    ).read_bytes()
    limits = onnx_policy.CPU_SECONDS, onnx_policy.MEMORY
    onnx_policy.CPU_SECONDS, onnx_policy.MEMORY = 5, 2**30
    for number in range(count):
        path = folder / "policy.onnx"
        if number % 10 == 0:
            loop(path, draw.choice(["Max", "Concat"]), draw.choice([60, 2**40, 2**62]))
        else:
            path.write_bytes(damaged(sound, draw))
        row.call(onnx_policy.load_policy, path)
    onnx_policy.CPU_SECONDS, onnx_policy.MEMORY = limits
    return row


COMMANDS = {
    "algorithms.nashconv": ["POLICY", "--game", "--json", "--deterministic", "--openspiel"],
    "algorithms.solve": [
        *("--iterations", "--variant", "--game", "--discounts", "--until", "--seed", "--out"),
    ],
    "algorithms.simulate": ["POLICY", "POLICY", "--hands", "--seed", "--game", "--json"],
    "algorithms.evaluate": ["POLICY", "--hands", "--seed", "--game", "--json"],
    "algorithms.dominance": ["POLICY", "--max", "--strict", "--game", "--json"],
    "algorithms.export_onnx": ["POLICY", "--out", "--json"],
    "algorithms.curves": ["POLICY", "POLICY", "--out"],
    "algorithms.rps": ["--rounds", "--opponent", "--seed", "--json"],
    "algorithms.train_ppo": [
        *("--game", "--net", "--env", "--recipe", "--init", "--save", "--seed", "--n-envs"),
        *("--n-steps", "--lr", "--entropy", "--magnet", "--width", "--fit", "--fit-lr"),
    ],
    "parity.check": ["--only", "--game", "--candidate", "--json"],
}
ALWAYS = {  # what comes last counts: these would take minutes
    "algorithms.train_ppo": ["--steps", "512", "--out", "model.zip", "--quiet"],
    "parity.check": ["--quick"],
}
WORDS = [
    "uniform", "nash:1/3", "nash:9e9999999", "random:1", "random:-1", "best-response", "cfr+:3",
    "kuhn", "leduc_poker", "kuhn_poker(players=3)", "nfg_game", "chess", "no_such_game", "(",
    "0", "1", "-1", "30", "1e22", "nan", "inf", "1e300", "99999999999999999999", "", "\n", "é",
    "/nowhere/x.json", "missing.zip", "missing.onnx", ".", "x" * 300, "mlp", "aec", "tutorial",
    "rules", "torture.py:KuhnPoker", "json:loads",
]  # fmt: skip


def command_lines(count: int, draw: random.Random, folder: Path) -> Row:
    """Commands with arguments of any kind: exit 0, 1 or 2, and one line where it is 2."""
    row = Row("command lines of any kind")
    script = folder / "commands.py"
    script.write_text(_COMMAND_SCRIPT)
    while row.tried < count:
        lines = []
        for _ in range(min(20, count - row.tried)):
            name = draw.choice(list(COMMANDS))
            line = [name]
            # A few at a time: of many one is always wrong at once, and the others never read.
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
            row.wrong.append(f"died at {lines[len(answers)]}: {done.stderr[-200:]!r}")
        row.wrong += [str(answer) for answer in answers if answer["fault"]]
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
        code = 0  # it was at work: nothing that was asked for is wrong with that
    except BaseException as error:
        fault = f"{type(error).__name__}: {error}"
    signal.alarm(0)
    said = err.getvalue()
    if not fault and code not in (0, 1, 2):
        fault = f"exit {code}"
    if not fault and code == 2 and said.count("\\n") != 1:
        fault = f"not one line: {said[-300:]!r}"
    print(json.dumps({"line": line, "code": code, "fault": fault}), flush=True)
"""

TRAIN = ["--steps", "120000", "--n-envs", "256", "--checkpoint-every", "2000", "--quiet"]


def _started(out: Path, *options: str) -> int:
    """The number of a process that trains, forked from this one, which has torch already."""
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        from algorithms.train_ppo import main as train

        os._exit(train(["--out", str(out / "model.zip"), *options]))
    return child


def _ended(child: int) -> int | None:
    """The exit code of a process, `None` while it runs."""
    done, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def kills(count: int, draw: random.Random, folder: Path) -> Row:
    """A training run killed at random moments, resumed each time: the end is the same."""
    import algorithms.learning.training  # noqa: F401  # before the forks: it takes longest

    row = Row("kills of a training run, each resumed")
    whole = Path(tempfile.mkdtemp(dir=folder))
    os.waitpid(_started(whole, *TRAIN), 0)
    wanted = load_policy(whole / "model.json")
    while row.tried < count:
        out = Path(tempfile.mkdtemp(dir=folder))
        options, code = list(TRAIN), None
        while code is None:
            child, kept = _started(out, *options), out / "model.ckpt"
            while not kept.exists() and code is None:
                time.sleep(0.002)
                code = _ended(child)
            until = time.monotonic() + draw.random()
            while code is None and (time.monotonic() < until or row.tried >= count):
                time.sleep(0.002)
                code = _ended(child)
            if code is None:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                options = ["--resume", "--quiet", "--checkpoint-every", "2000"]
                if kept.exists():
                    row.tried += 1
                else:  # it was over: the checkpoint goes last
                    code = 0
        if code:
            row.wrong.append(f"could not resume: exit {code}")
        elif load_policy(out / "model.json") != wanted:
            row.wrong.append("ended elsewhere")
        if left := [path.name for path in out.iterdir() if path.name.startswith(".")]:
            row.wrong.append(f"left behind: {left}")
    return row


def flipped_bits(count: int, draw: random.Random, folder: Path) -> Row:
    """Bits flipped in a checkpoint: every one of them is refused."""
    from algorithms.learning.checkpoint import read_checkpoint
    from tests.test_checkpoint import kept

    row, path, whole = Row("bits flipped in checkpoints"), folder / "model.ckpt", kept()
    for _ in range(count):
        content = bytearray(whole)
        content[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        if row.call(read_checkpoint, path) is not None:
            row.wrong.append("a damaged checkpoint was believed")
    return row


FULL = {
    "core": 1_000_000,
    "policies": 100_000,
    "models": 200,
    "onnx": 40,
    "commands": 300,
    "bits": 1_000,
    "kills": 50,
}


def rows(names: list[str], scale: float, seed: int) -> Iterator[Row]:
    """Those of these names, at a share of the full size."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        bodies: dict[str, Callable[[int, random.Random], Row]] = {
            "core": core,
            "policies": policies,
            "models": lambda count, draw: model_files(count, draw, folder),
            "onnx": lambda count, draw: onnx_files(count, draw, folder),
            "commands": lambda count, draw: command_lines(count, draw, folder),
            "bits": lambda count, draw: flipped_bits(count, draw, folder),
            "kills": lambda count, draw: kills(count, draw, folder),
        }
        for name in names:
            yield bodies[name](max(1, round(FULL[name] * scale)), random.Random(seed))


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit 1 if anything was lost or accepted wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=main.__doc__)
    parser.add_argument("only", nargs="*", help=f"some of {', '.join(FULL)} (all)")
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers (1)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    print("| what | tried | refused in one line | lost or accepted wrongly | seconds |")
    print("|---|---|---|---|---|")
    wrong = []
    start = time.monotonic()
    for row in rows(options.only or list(FULL), options.scale, options.seed):
        now = time.monotonic()
        print(
            f"| {row.what} | {row.tried:,} | {row.refused:,} | {len(row.wrong)} "
            f"| {now - start:.0f} |",
            flush=True,
        )
        wrong += row.wrong
        start = now
    for case in wrong[:40]:
        print(case, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
