"""The public API: its names, the contract's snippet, what importing it loads, shadowing."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kuhn_bridge
import kuhn_bridge.sb3

ROOT = Path(__file__).parents[2]
UNIFORM = kuhn_bridge.Policy.uniform("kuhn")
LARGE = "dark_hex(num_rows=4,num_cols=3)"  # no tree, and no exact measure

# The contract, word for word.
SNIPPET = """\
import kuhn_bridge as kb

policy = kb.solve("leduc_poker", "cfr+", iterations=1000)
policy.nash_conv()                                   # a float: chips per hand
policy.measure().losses[:3]                          # where the chips are lost
policy.save("leduc.json")
kb.load_policy("leduc.json") == policy

import pyspiel
game = pyspiel.load_game("leduc_poker")
kb.Policy.from_openspiel(pyspiel.UniformRandomPolicy(game), game).nash_conv()

from kuhn_bridge.sb3 import SelfPlay, SelfPlayVecEnv
from sb3_contrib import MaskablePPO
model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"), n_steps=2, batch_size=2048)
model.learn(20_480, callback=SelfPlay())
"""
VALUES = {
    "policy.nash_conv()": lambda value: type(value) is float and 0 < value < 0.01,
    "policy.measure().losses[:3]": lambda value: [loss.lost > 0 for loss in value] == [True] * 3,
    "kb.load_policy('leduc.json') == policy": lambda value: value is True,
    "kb.Policy.from_openspiel(pyspiel.UniformRandomPolicy(game), game).nash_conv()": (
        lambda value: value == pytest.approx(4.747222)
    ),
}
# The types of the contract, and errors that a type checker should find.
TYPED = """
from typing import assert_type

import numpy as np
import numpy.typing as npt

assert_type(policy, kb.Policy)
assert_type(policy.nash_conv(), float)
assert_type(policy.measure().gains, tuple[float, ...])
assert_type(kb.load_policy("uniform", game="kuhn", trust=False), kb.Policy)
assert_type(kb.Policy.random("kuhn", 1).greedy(), kb.Policy)
assert_type(kb.load_game("kuhn"), kb.Game)
assert_type(kb.Policy.from_sb3(model), kb.Policy)
assert_type(kb.train("kuhn", steps=64).policy, kb.Policy)
assert_type(policy.versus(policy), kb.Match)
assert_type(policy.best_response(0), kb.Policy)
assert_type(SelfPlay().average_policy, kb.Policy)
assert_type(SelfPlay().last_policy, kb.Policy)
policy.report("x.html", policy)
policy.play(in_terminal=True)
assert_type(kb.to_openspiel(kb.Action.BET, False), int)
assert_type(kb.from_openspiel(1, facing_bet=True), kb.Action)
assert_type(kb.INFORMATION_STATES, tuple[str, ...])
assert_type(kb.State.new("K", "J").act(kb.Action.BET).returns, tuple[int, int])
assert_type(kb.KuhnPoker().get_payoff([2, 1], "pp"), int)

table = kb.env(render_mode="ansi")
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
    table.step(kb.Action.BET)
assert_type(table.agent_selection, str)
kb.raw_env().close()
table.step("bet")  # an error
observation["mask"]  # an error
table.last(observe=False)[0]["observation"]  # an error
kb.solve("kuhn", iterations="many")  # an error
kb.Polici  # an error
SelfPlay().curves  # an error
policy.versus("uniform")  # an error
kb.train("kuhn", device=3)  # an error
"""
# A user's mypy follows imports as far as they go; that takes a minute and changes nothing here.
MYPY = """
[mypy]
strict = true
follow_imports = silent
[mypy-torch.*,jax.*,gymnasium.wrappers.*,gymnasium.vector.*]
follow_imports = skip
[mypy-pyspiel.*,sb3_contrib.*]
ignore_missing_imports = true
"""
NAMES = {
    kuhn_bridge: """
        Card Action Phase State KuhnPoker env raw_env to_openspiel from_openspiel load_game
        INFORMATION_STATES BridgeError ActionError IllegalActionError CardError HistoryError
        PolicyError GameError solve train Policy load_policy Game Measure Loss LowerBound Match
    """,
    kuhn_bridge.sb3: "SelfPlayVecEnv SelfPlayEnv SelfPlay",
    kuhn_bridge.State: """
        new cards history letters phase actor legal_actions is_terminal returns act observe mask
    """,
    kuhn_bridge.KuhnPoker: "is_terminal get_current_player get_payoff",
    kuhn_bridge.Policy: """
        uniform random from_openspiel from_network from_percentages from_sb3 to_openspiel save
        nash_conv measure lower_bound table __getitem__ greedy distil versus best_response report
        play
    """,
    kuhn_bridge.sb3.SelfPlay: "average_policy last_policy curve learner",
}


def python(*arguments, cwd, path="PYTHONPATH"):
    """A Python process in the folder `cwd` that finds this project."""
    environment = os.environ | {path: str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("owner", NAMES, ids=lambda owner: owner.__name__)
def test_every_name_of_the_contract_exists_and_is_documented(owner):
    for name in NAMES[owner].split():
        value = getattr(owner, name)
        if callable(value):
            assert value.__doc__, name
        assert name in dir(owner)
    if hasattr(owner, "__all__"):
        assert set(NAMES[owner].split()) <= set(owner.__all__)
        assert all(hasattr(owner, name) for name in owner.__all__)


def test_an_unknown_name_is_an_attribute_error():
    for module in (kuhn_bridge, kuhn_bridge.sb3):
        with pytest.raises(AttributeError, match=f"{module.__name__!r} has no attribute 'solv'"):
            _ = module.solv


def test_errors_are_value_errors_of_their_kind():
    with pytest.raises(kuhn_bridge.GameError, match="did you mean 'leduc_poker'"):
        kuhn_bridge.load_game("leduk_poker")
    with pytest.raises(kuhn_bridge.PolicyError, match="did you mean 'uniform'"):
        kuhn_bridge.load_policy("unifrom")
    kinds = [getattr(kuhn_bridge, name) for name in kuhn_bridge.__all__ if name.endswith("Error")]
    assert all(issubclass(kind, kuhn_bridge.BridgeError) for kind in kinds)
    assert issubclass(kuhn_bridge.BridgeError, ValueError)


@pytest.mark.slow
def test_the_snippet_of_the_contract_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    values = {}
    for node in ast.parse(SNIPPET).body:
        code = ast.unparse(node)
        if isinstance(node, ast.Expr):
            values[code] = eval(code, names)
        else:
            exec(code, names)
    assert set(VALUES) <= set(values)
    for code, is_right in VALUES.items():
        assert is_right(values[code]), code
    assert names["model"].num_timesteps == 20_480


@pytest.mark.slow
def test_a_type_checker_sees_every_name(tmp_path, pytestconfig):
    code = SNIPPET + TYPED + "".join(f"kb.{name}\n" for name in kuhn_bridge.__all__)
    (tmp_path / "snippet.py").write_text(code)
    (tmp_path / "mypy.ini").write_text(MYPY)
    cache = f"--cache-dir={pytestconfig.cache.mkdir('mypy')}"
    arguments = ["-m", "mypy", cache, "--no-error-summary", "snippet.py"]
    done = python(*arguments, cwd=tmp_path, path="MYPYPATH")
    lines = code.splitlines()
    wrong = [lines[int(line.split(":")[1]) - 1] for line in done.stdout.splitlines()]
    assert wrong == [line for line in lines if line.endswith("# an error")], done.stdout
    assert not done.stderr


HEAVY = "torch pyspiel scipy numba stable_baselines3 sb3_contrib pettingzoo gymnasium algorithms"


def test_importing_it_loads_nothing_heavy(tmp_path):
    code = "import sys, kuhn_bridge, kuhn_bridge.sb3; print(*sys.modules)"
    done = python("-c", code, cwd=tmp_path)
    assert "kuhn_bridge.rules" in done.stdout.split()
    assert not set(HEAVY.split()) & set(done.stdout.split()), done.stderr
    code = "import sys; from kuhn_bridge import env; print(*sys.modules)"
    assert "pettingzoo" in python("-c", code, cwd=tmp_path).stdout.split()


SHADOWS = ["algorithms/mine.py", "algorithms/__init__.py", "algorithms.py"]


@pytest.mark.parametrize("shadow", SHADOWS)
@pytest.mark.parametrize("code", ["kuhn_bridge.solve", "kuhn_bridge.sb3.SelfPlay"])
def test_a_package_of_the_user_that_shadows_ours_is_named(shadow, code, tmp_path):
    (tmp_path / shadow).parent.mkdir(exist_ok=True)
    (tmp_path / shadow).write_text("")
    # A folder without __init__.py shadows editable installs, which are not found by sys.path.
    editable = f"import sys; sys.path.remove({str(ROOT)!r})" if "mine" in shadow else ""
    done = python("-c", f"import kuhn_bridge.sb3; {editable}\n{code}", cwd=tmp_path)
    error = done.stderr.splitlines()[-1]
    assert error.startswith(f"ImportError: {code} needs the package 'algorithms' of kuhn-bridge")
    assert str(tmp_path / "algorithms") in error


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda kb: kb.solve("kuhn", 1000), "variant=1000: want a name"),
        (lambda kb: kb.solve("kuhn", iterations="10"), "iterations='10': want a whole number"),
        (lambda kb: kb.solve("kuhn", iterations=1.5), "iterations=1.5: want a whole number"),
        (lambda kb: kb.Policy({"0": {"BET": 1.0}}), "is not a game"),
        (lambda kb: kb.load_game("kuhn").action_label(0, 2), "action 2 is not legal"),
        (lambda kb: kb.load_game("kuhn").infoset_label(-1), "want a whole number from 0 to 11"),
        (lambda kb: kb.load_game("kuhn").infoset_label("x"), "infoset='x': want a whole number"),
        (lambda kb: kb.Policy.uniform("kuhn").lower_bound(seeds=3), "want a list of whole numbers"),
        (lambda kb: kb.Policy.uniform("kuhn").lower_bound(decisions="5"), "want a whole number"),
        (lambda kb: kb.solve("kuhn", until="x"), "until='x': want a NashConv above 0"),
        (lambda kb: kb.solve("kuhn", seed="x"), "seed='x': want a whole number from 0"),
        (lambda kb: kb.solve("kuhn", callback=3), "callback=3: want a function"),
        (lambda kb: kb.Policy("kuhn", 3), "12 x 3 numbers; got shape"),
        (lambda kb: kb.Policy.from_network(lambda seen: "abc", "kuhn"), "returns 'abc'"),
        (lambda kb: kb.Policy.from_network(lambda seen: {"a": 1}, "kuhn"), "an array .n, A. of"),
        (lambda kb: kb.Policy.from_sb3("model.zip"), "want a MaskablePPO or PPO"),
        (lambda kb: kb.load_policy(3), "want a name or a file"),
        (lambda kb: kb.Policy.uniform("kuhn").versus("uniform"), "want a Policy of kuhn"),
        (lambda kb: UNIFORM.versus(UNIFORM, hands="x"), "hands='x': want a whole number from 30"),
        (lambda kb: UNIFORM.versus(UNIFORM, seed=1.5), "seed=1.5: want a whole number"),
        (lambda kb: UNIFORM.versus(kb.Policy.uniform("leduc_poker")), "cannot play kuhn"),
        (lambda kb: UNIFORM.best_response(2), "player=2: want a seat from 0 to 1"),
        (lambda kb: UNIFORM.report("x.txt"), "a file whose name ends in .html"),
        (lambda kb: kb.Policy.uniform(LARGE).save("x.npz"), "is a network, and written as .zip or"),
        (lambda kb: kb.sb3.SelfPlayVecEnv(0), "n_envs=0: want a whole number from 1"),
        (lambda kb: kb.sb3.SelfPlayVecEnv("leduc_poker"), "n_envs='leduc_poker': want a whole"),
        (lambda kb: kb.sb3.SelfPlayVecEnv(8, seed="x"), "seed='x': want a whole number from 0"),
        (lambda kb: kb.sb3.SelfPlayVecEnv(8, seed=-1), "seed=-1: want a whole number from 0"),
        (lambda kb: kb.sb3.SelfPlayEnv(seed=1.5), "seed=1.5: want a whole number from 0"),
        (lambda kb: kb.sb3.SelfPlayVecEnv(8, opponents={"1": UNIFORM}), "want seats from 0 to 1"),
        (lambda kb: kb.sb3.SelfPlay(points=1.5), "points=1.5: want a whole number"),
        (lambda kb: kb.sb3.SelfPlay(total_steps=0), "total_steps=0: want a whole number from 1"),
        (lambda kb: kb.sb3.SelfPlay(measure=3), "measure=3: want a function"),
        (lambda kb: kb.sb3.SelfPlay(watch="x"), "watch='x': want a function"),
        (lambda kb: kb.train("kuhn", steps=1.5), "steps=1.5: want a whole number"),
        (lambda kb: kb.train("kuhn", seed=1.5), "seed=1.5: want a whole number"),
        (lambda kb: kb.train("kuhn", init=3), "init=3: want a text"),
        (lambda kb: kb.train("kuhn", policy_kwargs=3), "policy_kwargs=3: want a map"),
        (lambda kb: kb.train("kuhn", callback=kb.sb3.SelfPlay), "SelfPlay is a class"),
        (lambda kb: kb.train("kuhn", policy_kwargs={}, device="cuda"), "finds no such device"),
        (lambda kb: kb.train("kuhn", policy_kwargs={}, device="gpu"), "device='gpu': Expected one"),
    ],
)
def test_wrong_arguments_are_named(call, reason):
    with pytest.raises(kuhn_bridge.BridgeError, match=reason) as raised:
        call(kuhn_bridge)
    assert "\n" not in str(raised.value)


def test_what_is_printed_is_short():
    tree = kuhn_bridge.load_game("leduc_poker").tree
    assert repr(tree) == "<Tree of 9,457 nodes, 936 information sets>"
    assert "NashConv 0.916667" in repr(kuhn_bridge.Policy.uniform("kuhn").measure())
