"""Policies: carried across the bridge, trained, exported, and run in the browser's language."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import pyspiel

from algorithms.exact import values
from algorithms.games.kuhn import kuhn, kuhn_tree
from algorithms.policies import Policy, load_policy
from algorithms.policies.openspiel import to_pyspiel_tabular, to_python_tabular
from algorithms.support.command import EXIT_INTERRUPTED, EXIT_OK
from algorithms.support.errors import UsageError
from kuhn_bridge.bridge import INFORMATION_STATES
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.openspiel import SHORT_NAME
from kuhn_bridge.rules import AGENTS, Action
from parity.registry import Settings, Skipped, check
from parity.solvers import ITERATES, random_policies, worth
from parity.tally import Tally

GROUP = "policies"
SMALL = 100_000  # steps: enough to be no longer uniform
SINGLE = 1e-6  # what float32 networks are good for


@cache
def scratch() -> Path:
    """A folder that is gone when the program ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def small_model() -> Path:
    """A model trained on the spot, always the same."""
    from algorithms import train_ppo

    path = scratch() / "model.zip"
    code = train_ppo.main(["--steps", str(SMALL), "--out", str(path), "--quiet"])
    if code == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    if code != EXIT_OK:
        raise UsageError("the small model could not be trained")
    return path


@cache
def exported(settings: Settings) -> tuple[Policy, Path]:
    """The model's policy, and the ONNX file made of it unless it is one."""
    model = settings.model or small_model()
    policy = load_policy(model, kuhn())
    if model.suffix == ".onnx":
        return policy, model
    try:
        from algorithms.export_onnx import export
        from algorithms.policies.models import read_model

        path = scratch() / "policy.onnx"
        export(read_model(model), kuhn(), path)
    except ImportError as missing:
        raise Skipped(f"{missing.name} is not installed") from None
    return policy, path


def compare_rows(tally: Tally, policy: Policy, rows: Sequence[Sequence[float]]) -> None:
    """Require `rows` `(12, 3)` to be the policy's, and illegal actions to be exactly 0."""
    for name, row in zip(INFORMATION_STATES, rows, strict=True):
        right = policy[name]
        for action in Action:
            phrase = f"plays {action.name} with probability {{}}"
            tolerance = SINGLE if action in right else 0.0
            tally.close(repr(name), phrase, row[action], right.get(action, 0.0), tolerance)


@check("policies", GROUP, "policies to both kinds of OpenSpiel table and back")
def check_policies(tally: Tally, settings: Settings) -> None:
    """Nothing is lost, on kuhn_poker and on our game."""
    for game in map(pyspiel.load_game, ("kuhn_poker", SHORT_NAME)):
        for where, policy in islice(random_policies(settings), 8 if settings.quick else 40):
            for convert in (to_python_tabular, to_pyspiel_tabular):
                theirs = convert(policy.game, policy.table, game)
                claim = f"{convert.__name__} and back gives the same policy"
                back = Policy.from_openspiel(theirs, kuhn())
                tally.holds(f"{where} on {game}", claim, back == policy)


@check("model", GROUP, "a trained model's NashConv and value, ours and OpenSpiel's")
def check_model(tally: Tally, settings: Settings) -> None:
    """Both sides measure it alike; our own small one is read by SB3's loader too."""
    path = settings.model or small_model()
    policy = load_policy(path, kuhn())
    if settings.model is None:
        trusted = load_policy(path, kuhn(), trust=True)
        compare_rows(tally, policy, trusted.table.tolist())
    ours = values.evaluate_policy(kuhn_tree(), policy.table)
    theirs = pyspiel.nash_conv(
        pyspiel.load_game("kuhn_poker"), to_pyspiel_tabular(policy.game, policy.table)
    )
    tally.close(path.name, "has NashConv {}", ours.nash_conv, theirs, ITERATES)
    for agent, mine, right in zip(AGENTS, ours.values, worth(policy), strict=True):
        tally.close(path.name, f"pays {agent} {{}}", mine, right, ITERATES)


@check("onnx", GROUP, "the exported model in onnxruntime against torch, at 12 states")
def check_onnx(tally: Tally, settings: Settings) -> None:
    """Probabilities at every information state."""
    tally.theirs = "torch"
    policy, path = exported(settings)
    from algorithms.export_onnx import example_inputs, run_onnx

    outputs = run_onnx(path, example_inputs(kuhn()))
    compare_rows(tally, policy, outputs["probabilities"].tolist())


@check("policy.js", GROUP, "the exported model in the page's own module against torch")
def check_policy_js(tally: Tally, settings: Settings) -> None:
    """onnxruntime-web under node, at every information state."""
    from algorithms.playing.page import RUNTIME, runtime_files
    from kuhn_bridge.web.check import report

    tally.theirs = "torch"
    files = runtime_files()
    if not files:
        raise Skipped(
            "onnxruntime-web is not installed; `npm install onnxruntime-web` here fetches it"
        )
    policy, path = exported(settings)
    try:
        found = report(onnx=path, runtime=files[RUNTIME[0]])
    except BridgeError as reason:
        raise Skipped(str(reason)) from None
    compare_rows(tally, policy, found["probabilities"])
