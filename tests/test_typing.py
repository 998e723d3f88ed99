"""What a type checker makes of a user's code: types, not `Any`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SNIPPET = """
from typing import assert_type

import numpy as np
import numpy.typing as npt

from kuhn_bridge import (Action, State, Policy, env)

table = env(render_mode="ansi")
table.reset(seed=7)
for agent in table.agent_iter():
    observation, reward, termination, truncation, info = table.last()
    mask = observation["action_mask"]
    assert_type(agent, str)
    assert_type(observation["observation"], npt.NDArray[np.float32])
    assert_type(mask, npt.NDArray[np.int8])
    assert_type(reward, int)
    assert_type(termination, bool)
    assert_type(info["action_mask"], npt.NDArray[np.int8])
    table.step(None if termination else table.action_space(agent).sample(mask))
    table.step(int(mask.argmax()))
    table.step(Action.BET)
assert_type(table.agent_selection, str)
assert_type(State.new("K", "J").act(Action.BET).returns, tuple[int, int])
assert_type(Policy.uniform("kuhn")["2pb"], dict[Action, float])
table.step("bet")  # an error
observation["mask"]  # an error
table.last(observe=False)[0]["observation"]  # an error
"""
# A user's mypy follows these as far as they go; that takes a minute and changes nothing here.
SETTINGS = """
[mypy]
strict = true
follow_imports = silent
[mypy-torch.*,jax.*,gymnasium.wrappers.*,gymnasium.vector.*]
follow_imports = skip
"""


def test_a_users_loop_is_typed(tmp_path, pytestconfig):
    (tmp_path / "snippet.py").write_text(SNIPPET)
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    cache = f"--cache-dir={pytestconfig.cache.mkdir('mypy')}"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", cache, "--no-error-summary", "snippet.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = SNIPPET.splitlines()
    wrong = [lines[int(line.split(":")[1]) - 1] for line in done.stdout.splitlines()]
    assert wrong == [line for line in lines if line.endswith("# an error")], done.stdout
    assert not done.stderr
