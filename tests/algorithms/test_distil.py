"""`algorithms.distil`: any policy into a network, by the command."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest

import kuhn_bridge as kb
from algorithms import distil, export_onnx, nashconv
from algorithms.support.command import EXIT_INTERRUPTED

INDISTINCT = "dark_hex(board_size=2,gameversion=cdh)"
NO_TENSORS = "nim(pile_sizes=1;2)"
SMALL = ["--width", "16", "--steps", "400"]


def run(*arguments):
    text = io.StringIO()
    with redirect_stdout(text):
        code = distil.main([str(argument) for argument in arguments])
    return code, text.getvalue()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A model of a solver's policy, and what the command printed about it as JSON."""
    path = tmp_path_factory.mktemp("distil") / "model.zip"
    code, printed = run("dcfr:1000", "--out", path, "--json", *SMALL)
    assert code == 0
    return path, json.loads(printed)


def test_the_model_loses_what_the_command_says(written):
    path, printed = written
    policy = kb.load_policy("dcfr:1000")
    assert printed["nash_conv_before"] == policy.nash_conv()
    assert printed["nash_conv_after"] == pytest.approx(kb.load_policy(path).nash_conv(), abs=1e-6)
    lost = printed["nash_conv_after"] - printed["nash_conv_before"]
    assert printed["share_lost"] == pytest.approx(lost / printed["nash_conv_uniform"])
    assert 0 < lost < 0.1
    assert printed["steps"] == 400
    assert printed["curve"][-1][0] == 400
    assert printed["losses"][0]["lost"] >= printed["losses"][1]["lost"] > 0
    assert printed["losses"][0]["label"].startswith("player_")


def test_the_text_has_both_measures_and_the_worst_information_sets(tmp_path):
    path = tmp_path / "model.zip"
    code, printed = run("dcfr:100", "--out", path, "--losses", "3", *SMALL)
    lines = printed.splitlines()
    assert code == 0
    assert lines[0] == "kuhn: 58 nodes, 12 information sets"
    assert lines[1] == "dcfr:100 in a network of 2 x 16, 499 weights, after 400 steps"
    before, after = (float(line.split()[-1]) for line in lines[3:5])
    assert before == pytest.approx(kb.load_policy("dcfr:100").nash_conv(), rel=1e-4)
    assert after == pytest.approx(kb.load_policy(path).nash_conv(), rel=1e-3)
    assert lines[5].endswith("of uniform play's 0.9167)")
    heading = next(i for i, line in enumerate(lines) if line.startswith("where it loses most"))
    assert len([line for line in lines[heading + 1 :] if line.startswith("player_")]) == 3
    assert lines[-1].startswith(f"{path}: ")


def test_a_network_goes_into_a_smaller_one_and_into_onnx(written, tmp_path, monkeypatch):
    path, printed = written
    code, smaller = run(path, "--out", tmp_path / "small.onnx", "--width", "4", "--json")
    document = json.loads(smaller)
    assert code == 0
    assert document["weights"] < printed["weights"]
    assert document["nash_conv_before"] == pytest.approx(printed["nash_conv_after"], abs=1e-6)
    measured = kb.load_policy(tmp_path / "small.onnx").nash_conv()
    assert measured == pytest.approx(document["nash_conv_after"], abs=1e-6)
    monkeypatch.chdir(tmp_path)
    assert export_onnx.main([str(path)]) == 0
    assert np.abs(kb.load_policy("policy.onnx").table - kb.load_policy(path).table).max() < 1e-6


def test_a_model_is_an_opponent_and_is_measured_by_commands(written):
    from kuhn_bridge.sb3 import SelfPlayVecEnv

    path, _ = written
    env = SelfPlayVecEnv(4, "kuhn", opponents={1: kb.load_policy(path)})
    env.reset()
    env.step(env.action_masks().argmax(axis=1))
    assert nashconv.main([str(path), "--max", "0.1"]) == 0


def test_ctrl_c_writes_the_best_so_far(tmp_path, monkeypatch, capsys):
    from algorithms.policies import distillation

    calls = []
    loss = distillation.weighted_cross_entropy

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 100:
            raise KeyboardInterrupt
        return loss(*arguments)

    monkeypatch.setattr(distillation, "weighted_cross_entropy", interrupted)
    path = tmp_path / "model.zip"
    code, printed = run("dcfr:100", "--out", path, "--json", *SMALL)
    document = json.loads(printed)
    assert code == EXIT_INTERRUPTED
    assert "interrupted after 99 of 400 steps" in capsys.readouterr().err
    assert (document["finished"], document["steps"]) == (False, 99)
    assert document["nash_conv_after"] == min(value for _, value in document["curve"])
    assert kb.load_policy(path).nash_conv() == pytest.approx(document["nash_conv_after"], abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["uniform", "--width", "0"], "--width: want a number from 1 to 4096, not 0"),
        (["uniform", "--width", "5000"], "--width: want a number from 1 to 4096, not 5000"),
        (["uniform", "--seed", "-1"], "--seed: want a number from 0 to 18446744073709551615"),
        (["uniform", "--seed", f"{2**64}"], "--seed: want a number from 0 to 18446744073709551615"),
        (["uniform", "--steps", "0"], "--steps: want at least 1, not 0"),
        (["uniform", "--out", "model.pt"], "model.pt: give a name that ends in .zip or .onnx"),
        (["uniform", "--out", "no/model.zip"], "there is no directory no"),
        (["uniform", "--game", INDISTINCT], "a network cannot distinguish them; a table can; sol"),
        (["uniform", "--game", NO_TENSORS], "no information state tensor, which networks need"),
        (["uniform", "--game", NO_TENSORS], "solve --out policy.json writes its table"),
        (["uniform", "--game", "chess"], "there is no exact measure"),
        (["kuhn.json", "--game", "leduc_poker"], "kuhn.json: a policy of kuhn, not of leduc_poker"),
        (["dcfr", "--game", "kuhn"], "use dcfr:<iterations>"),
        (["no.json"], "no.json: No such file"),
    ],
)
def test_bad_input_is_one_line(arguments, words, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kb.Policy.uniform("kuhn").save("kuhn.json")
    assert words in refused(distil.main, arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["kuhn.json"]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("width", (0, -3, 1.5, "8", True, 10**6)),
        ("steps", (0, 2.5, "8")),
        ("seed", (-1, 0.5, "8", 2**64)),
    ],
)
def test_numbers_of_a_fit_are_whole_and_in_their_range(name, numbers):
    policy = kb.Policy.uniform("kuhn")
    for number in numbers:
        with pytest.raises(kb.BridgeError, match=f"{name}=.*: want a whole number from "):
            policy.distil(**{"steps": 1, name: number})
