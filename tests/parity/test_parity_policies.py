"""The checks of policies and models fail on planted errors."""

from types import SimpleNamespace

import pytest

from algorithms import train_ppo
from algorithms.playing import page
from algorithms.policies import load_policy
from kuhn_bridge import Policy
from parity import check, policies
from parity.registry import run
from tests.planted_errors import KUHN_CHECKS, QUICK, failures, measured


def sharpened(source, game, trust=False):
    """What SB3's loader would give is another policy."""
    policy = load_policy(source, game, trust=trust)
    return policy.greedy() if trust else policy


def running(change):
    """Another way to run the exported model."""
    return {"run_model": lambda path: change(policies.run_in_onnxruntime(path))}


def other_policy(policy, game):
    return Policy.from_openspiel(policy, game).greedy()


def a_little_more(rows):
    return [[probability + 1e-7 for probability in row] for row in rows]


PLANTED = [
    (
        "policies",
        {"reader": SimpleNamespace(from_openspiel=other_policy)},
        "to_python_tabular and back gives the same policy does not hold",
    ),
    ("model", {"load": sharpened}, "ours plays CHECK_OR_CALL with probability"),
    ("model", measured(nash_conv=0.0), "model.zip: ours has NashConv 0, OpenSpiel"),
    ("model", measured(values=(7.0, -7.0)), "model.zip: ours pays player_0 7"),
    ("onnx", running(lambda rows: rows[::-1]), "torch plays"),
    ("onnx", running(a_little_more), "'0': ours plays FOLD with probability 1e-07, torch plays"),
    ("policy.js", running(lambda rows: rows[::-1]), "torch plays"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "implementation", "text"), PLANTED)
def test_a_planted_error_is_described(name, implementation, text):
    assert any(text in case for case in failures(name, implementation))


def test_a_missing_runtime_skips_the_check(monkeypatch):
    monkeypatch.setattr(page, "runtime_files", dict)
    result = run(KUHN_CHECKS["policy.js"], QUICK)
    assert result.status == "skipped"
    assert result.note.startswith("onnxruntime-web is not installed")


def test_a_model_of_the_user_is_checked(capsys):
    for model in (policies.small_model(), policies.exported(QUICK)[1]):
        assert check.main(["--only", "model", "--only", "onnx", "--model", str(model)]) == 0
        assert "everything agrees" in capsys.readouterr().out


def test_ctrl_c_during_the_training_of_the_small_model_is_not_a_mismatch(capsys, monkeypatch):
    monkeypatch.setattr(train_ppo, "main", lambda argv: 130)
    policies.small_model.cache_clear()
    assert check.main(["--only", "model"]) == 130
    assert "FAIL" not in capsys.readouterr().out
