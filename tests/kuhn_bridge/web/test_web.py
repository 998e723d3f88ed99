"""The page's modules under node, and its files."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from algorithms.compiled.nashconv import evaluate_policy
from algorithms.games.kuhn import kuhn_tree
from algorithms.kuhn_equilibria import nash
from algorithms.playing import page
from kuhn_bridge import Action, Policy
from kuhn_bridge.rules import BETTING
from kuhn_bridge.web import check
from tests.games import COSTS, game

ROOT = Path(__file__).parents[3]
WEB = ROOT / "kuhn_bridge" / "web"


def need(found: Any, what: str) -> Any:
    """What was found; without it CI fails, and other machines skip the test."""
    if not found and os.environ.get("CI"):
        pytest.fail(f"CI needs {what}")
    return found or pytest.skip(f"needs {what}")


def test_the_committed_vectors_are_those_of_the_core() -> None:
    assert (ROOT / "tests" / "web" / "vectors.json").read_text() == check.to_json()


def test_the_chance_nodes_of_the_vectors_are_those_of_the_openspiel_face() -> None:
    nodes = json.loads(check.to_json())["nodes"]
    assert len({(*node["cards"], node["letters"]) for node in nodes}) == len(nodes) == 58
    for node in nodes[:4]:
        state = game("python_kuhn_bridge").new_initial_state()
        for card in node["cards"]:
            state.apply_action(card)
        seen = [state.observation_tensor(seat) for seat in range(2)]
        assert seen == [agent["observation"] for agent in node["agents"]]


def test_the_modules_pass_their_own_tests() -> None:
    node = need(shutil.which("node"), "node")
    files = [str(path) for path in sorted((ROOT / "tests" / "web").glob("*.test.js"))]
    done = subprocess.run(
        [node, "--test", "--test-reporter=tap", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE), done.stdout


REPLIES = """
import { readFileSync } from "node:fs";
import { replies } from "./kuhn_bridge/web/values.js";
const policies = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(policies.map((rows) => replies(rows))));
"""


def test_action_values_agree_with_the_tree() -> None:
    """Best values of random policies, and the exact costs of every move against perfect play."""
    node = need(shutil.which("node"), "node")
    tables = [Policy.random("kuhn", seed).table for seed in range(30)] + [nash(page.PERFECT_ALPHA)]
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
    for name, values in answers[-1]["actionValues"].items():
        top = max(value for value in values if value is not None)
        legal = [action for action in Action if values[action] is not None]
        assert legal == list(BETTING[name[1:]].after)
        for action in legal:
            cost = float(COSTS.get((name, action), 0))
            assert top - values[action] == pytest.approx(cost, abs=1e-12)


def test_every_module_that_the_page_imports_is_served() -> None:
    served = set(page.page_files())
    assert served <= {path.name for path in WEB.iterdir()}
    for name in served:
        text = (WEB / name).read_text()
        imported = re.findall(r'(?:from "\./|href="|src=")([\w.]+)"', text)
        assert set(imported) <= served, name
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
