"""The checks of policies: converted, trained, exported to ONNX, and run in JavaScript."""

import atexit
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import pyspiel

from algorithms.compiled.nashconv import evaluate_policy
from algorithms.games.kuhn import kuhn
from algorithms.policies import Policy, load_policy
from algorithms.policies.openspiel_policies import to_pyspiel_tabular, to_python_tabular
from algorithms.support.command import EXIT_INTERRUPTED
from kuhn_bridge.bridge import INFORMATION_STATES
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.openspiel import SHORT_NAME
from kuhn_bridge.rules import AGENTS, Action
from kuhn_bridge.web.check import report
from parity.algorithms import Evaluate
from parity.openspiel_measures import (
    ITERATES,
    openspiel_nash_conv,
    openspiel_values,
    random_policies,
)
from parity.registry import CheckSettings, Group, Skipped, Tally

POLICIES = Group("policies")
STEPS = 100_000  # after which the small model is no longer uniform
SINGLE_PRECISION = 1e-6
# How many policies are converted.
MAX_POLICIES = 40
MAX_POLICIES_QUICK = 8

RunModel: TypeAlias = Callable[[Path], Sequence[Sequence[float]]]
"""The probabilities `(12, 3)` of an ONNX file at the 12 information states."""


@cache
def scratch_folder() -> Path:
    """A folder that is removed when the program ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def small_model() -> Path:
    """A model that is trained on first use, always with the same result."""
    from algorithms import train_ppo

    path = scratch_folder() / "model.zip"
    options = ["--steps", str(STEPS), "--out", str(path), "--quiet"]
    if train_ppo.main(options) == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    return path


@cache
def exported(settings: CheckSettings) -> tuple[Policy, Path]:
    """The model's policy and its ONNX file, which is exported unless the model is one already."""
    model = settings.model or small_model()
    policy = load_policy(model, kuhn())
    if model.suffix == ".onnx":
        return policy, model
    from algorithms.policies.load import open_source
    from algorithms.policies.onnx_writer import export

    path = scratch_folder() / "policy.onnx"
    export(open_source(str(model)).network(kuhn()), kuhn(), path)
    return policy, path


def run_in_onnxruntime(path: Path) -> list[list[float]]:
    """The probabilities `(12, 3)` that Python's onnxruntime computes for an ONNX file."""
    from algorithms.policies.onnx_writer import example_inputs, run_onnx

    outputs = run_onnx(path, example_inputs(kuhn()))
    probabilities: list[list[float]] = outputs.probabilities.tolist()
    return probabilities


def run_in_page(path: Path) -> list[list[float]]:
    """The probabilities `(12, 3)` that the page's policy.js computes for an ONNX file, under node.

    It uses onnxruntime-web.
    """
    from algorithms.playing.page import RUNTIME, runtime_files

    files = runtime_files()
    if not files:
        raise Skipped("onnxruntime-web is not installed; run `npm install onnxruntime-web`")
    loader = files[RUNTIME[0]]
    try:
        probabilities: list[list[float]] = report(onnx=path, runtime=loader)["probabilities"]
        return probabilities
    except BridgeError as reason:
        raise Skipped(str(reason)) from None


def compare_policy(tally: Tally, policy: Policy, rows: Sequence[Sequence[float]]) -> None:
    """Require that `rows` `(12, 3)` are the policy's, exactly 0 for illegal actions."""
    for name, row in zip(INFORMATION_STATES, rows, strict=True):
        expected = policy[name]
        for action in Action:
            phrase = f"plays {action.name} with probability {{}}"
            tolerance = SINGLE_PRECISION if action in expected else 0.0
            tally.close(repr(name), phrase, row[action], expected.get(action, 0.0), tolerance)


@POLICIES.check("policies", "random policies to both kinds of OpenSpiel table and back")
def _check_policies(
    tally: Tally, settings: CheckSettings, *, reader: type[Policy] = Policy
) -> None:
    """The policy must come back bit for bit, on kuhn_poker and on our game."""
    at_most = MAX_POLICIES_QUICK if settings.quick else MAX_POLICIES
    for game in (pyspiel.load_game("kuhn_poker"), pyspiel.load_game(SHORT_NAME)):
        for place, policy in islice(random_policies(settings), at_most):
            for convert in (to_python_tabular, to_pyspiel_tabular):
                back = reader.from_openspiel(convert(policy.game, policy.table, game), kuhn())
                claim = f"{convert.__name__} and back gives the same policy"
                tally.holds(f"{place} on {game}", claim, back == policy)


@POLICIES.check("model", "a trained model's NashConv and value, ours and OpenSpiel's")
def _check_model(
    tally: Tally,
    settings: CheckSettings,
    *,
    load: Callable[..., Policy] = load_policy,
    evaluate: Evaluate = evaluate_policy,
) -> None:
    """Our small model is also read by SB3's own loader, which must give the same policy."""
    path = settings.model or small_model()
    policy = load(path, kuhn())
    if settings.model is None:
        compare_policy(tally, policy, load(path, kuhn(), trust=True).table.tolist())
    measure = evaluate(kuhn().tree, policy.table)
    their_nash_conv = openspiel_nash_conv(policy)
    tally.close(path.name, "has NashConv {}", measure.nash_conv, their_nash_conv, ITERATES)
    their_values = openspiel_values(policy)
    for agent, value, their_value in zip(AGENTS, measure.values, their_values, strict=True):
        tally.close(path.name, f"pays {agent} {{}}", value, their_value, ITERATES)


@POLICIES.check("onnx", "the exported model in onnxruntime against torch, at 12 states")
def _check_onnx(
    tally: Tally, settings: CheckSettings, *, run_model: RunModel = run_in_onnxruntime
) -> None:
    tally.theirs = "torch"
    policy, path = exported(settings)
    compare_policy(tally, policy, run_model(path))


@POLICIES.check("policy.js", "the exported model in the page's own module against torch")
def _check_policy_js(
    tally: Tally, settings: CheckSettings, *, run_model: RunModel = run_in_page
) -> None:
    tally.theirs = "torch"
    policy, path = exported(settings)
    compare_policy(tally, policy, run_model(path))
