"""The page's modules under node: the engine against the core, policies against onnxruntime."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms.exact.kuhn import exact_nash, from_exact, move_costs
from algorithms.exact.values import evaluate_policy
from algorithms.games.kuhn import kuhn, kuhn_tree
from algorithms.playing import page
from algorithms.policies import load_policy
from algorithms.policies.onnx_writer import export
from kuhn_bridge import Action, Card, Policy, State
from kuhn_bridge.web import check

ROOT = Path(__file__).parents[1]
WEB = ROOT / "kuhn_bridge" / "web"


def need(found: Any, what: str) -> Any:
    """What was found; without it CI fails, and other machines skip the test."""
    if not found and os.environ.get("CI"):
        pytest.fail(f"CI needs {what}")
    return found or pytest.skip(f"needs {what}")


@pytest.fixture(scope="module")
def onnx_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported network whose probabilities differ at every information set."""
    import torch

    torch.manual_seed(11)
    hidden, out = torch.nn.Linear(10, 16), torch.nn.Linear(16, 3)
    with torch.no_grad():
        out.weight *= 6
    path = tmp_path_factory.mktemp("onnx") / "policy.onnx"
    export(torch.nn.Sequential(hidden, torch.nn.Tanh(), out), kuhn(), path)
    return path


def test_the_committed_vectors_are_those_of_the_core() -> None:
    assert (ROOT / "tests" / "web" / "vectors.json").read_text() == check.to_json()


def test_the_vectors_are_all_58_nodes_and_agree_with_the_openspiel_face() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    import kuhn_bridge.openspiel  # noqa: F401

    game = pyspiel.load_game("python_kuhn_bridge")
    nodes = json.loads(check.to_json())["nodes"]
    assert len({(*node["cards"], node["letters"]) for node in nodes}) == len(nodes) == 58
    for node in nodes:
        state = game.new_initial_state()
        for card in node["cards"]:
            state.apply_action(card)
        for letters in (node["letters"][: i + 1] for i in range(len(node["letters"]))):
            state.apply_action(action_to(node["cards"], letters))
        assert list(state.returns()) == node["returns"]
        for seat, agent in enumerate(node["agents"]):
            assert state.observation_tensor(seat) == agent["observation"]


def test_the_modules_pass_their_own_tests() -> None:
    node = need(shutil.which("node"), "node")
    files = [str(path) for path in sorted((ROOT / "tests" / "web").glob("*.test.js"))]
    done = subprocess.run(
        [node, "--test", "--test-reporter=tap", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE), done.stdout


def test_the_engine_agrees_with_the_core() -> None:
    need(shutil.which("node"), "node")
    assert check.report() == {"nodes": 58, "compared": 522, "mismatches": []}


def test_a_mismatch_of_the_engine_is_described() -> None:
    need(shutil.which("node"), "node")
    vectors = json.loads(check.to_json())
    node = next(n for n in vectors["nodes"] if (n["cards"], n["letters"]) == ([2, 1], "pp"))
    node["returns"] = [2, -2]
    (mismatch,) = check.report(json.dumps(vectors))["mismatches"]
    assert mismatch == {
        "cards": [2, 1],
        "letters": "pp",
        "field": "returns",
        "engine": [1, -1],
        "core": [2, -2],
    }


def test_the_policy_module_agrees_with_onnxruntime(onnx_path: Path) -> None:
    need(shutil.which("node"), "node")
    runtime = need(page.runtime_files(), "onnxruntime-web (make web)")
    got = check.report(onnx=onnx_path, runtime=runtime[page.RUNTIME[0]])["probabilities"]
    wanted = load_policy(str(onnx_path)).table
    assert np.abs(np.array(got) - wanted).max() < 1e-6
    assert (np.array(got)[wanted == 0] == 0).all()


REPLIES = """
import { readFileSync } from "node:fs";
import { replies } from "./kuhn_bridge/web/values.js";
const policies = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(policies.map((rows) => replies(rows))));
"""


def test_action_values_agree_with_the_tree() -> None:
    """Best values of random policies, and the exact costs of every move against perfect play."""
    node = need(shutil.which("node"), "node")
    perfect = exact_nash(page.PERFECT_ALPHA)
    tables = [Policy.random("kuhn", seed).table for seed in range(30)] + [from_exact(perfect)]
    done = subprocess.run(
        [node, "--input-type=module", "--eval", REPLIES],
        input=json.dumps([table.tolist() for table in tables]),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    answers = json.loads(done.stdout)
    for table, answer in zip(tables, answers, strict=True):
        measured = evaluate_policy(kuhn_tree(), table)
        assert answer["best"] == pytest.approx(measured.best_values, abs=1e-12)
        assert len(answer["actionValues"]) == 12
    for name, costs in move_costs(perfect).items():
        values = answers[-1]["actionValues"][name]
        top = max(value for value in values if value is not None)
        assert [action for action in Action if values[action] is not None] == list(costs)
        for action, cost in costs.items():
            assert top - values[action] == pytest.approx(float(cost), abs=1e-12)


def test_every_module_that_the_page_imports_is_served() -> None:
    assert set(page.PAGE) <= {path.name for path in WEB.iterdir()}
    for name in page.PAGE:
        text = (WEB / name).read_text()
        imported = re.findall(r'(?:from "\./|href="|src=")([\w.]+)"', text)
        assert set(imported) <= set(page.PAGE), name
        assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), name


def test_the_lock_file_names_no_host() -> None:
    lock = (ROOT / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert "://" not in lock
    wanted = json.loads((ROOT / "package.json").read_text())["dependencies"]["onnxruntime-web"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", wanted)


# The pairs of colours that text is set in. The felt is lightest in the middle, under an own move.
PAIRS = (
    *(("ink", ground) for ground in ("paper", "panel")),
    *(("quiet", ground) for ground in ("paper", "panel")),
    *((ink, "felt") for ink in ("felt-ink", "felt-quiet", "felt-costly")),
    *((ink, "panel") for ink in ("good", "bad", "j", "q", "k")),
    ("panel", "accent"),
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS)
def test_text_has_enough_contrast(scheme: str, ink: str, ground: str) -> None:
    light, dark = (WEB / "common.css").read_text().split("@media", 2)[:2]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", light))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#\w{6})", dark))
    veils = {"felt-ink": 0.05 + 0.95 * 0.10, "felt-quiet": 0.05, "felt-costly": 0.05}
    assert contrast(colours[ink], colours[ground], veils.get(ink, 0.0)) >= 4.5


def contrast(ink: str, ground: str, whitened: float) -> float:
    """The ratio of WCAG 2, against a ground mixed with some white."""

    def luminance(colour: str, white: float) -> float:
        mixed = [int(colour[i : i + 2], 16) / 255 * (1 - white) + white for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in mixed]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(ink, 0), luminance(ground, whitened)))
    return (high + 0.05) / (low + 0.05)


def action_to(cards: Any, letters: str) -> Action:
    """The action that leads to `letters` from the history one shorter."""
    state = State((Card(cards[0]), Card(cards[1])), letters[:-1])
    return next(a for a in state.legal_actions if state.act(a).letters == letters)
