"""Lower bounds from trained best responses: below the exact gain, never below 0, and honest."""

import json

import numpy as np
import pytest
import torch

from algorithms.compiled.nashconv import evaluate_policy, expected_values
from algorithms.games import load_game
from algorithms.kuhn_equilibria import nash
from algorithms.lower_bound import (
    NO_GAIN,
    STARTS,
    Gain,
    LowerBound,
    SeatBound,
    Target,
    choose_and_measure,
    lower_bound,
    response_gains,
    to_json,
    to_text,
)
from algorithms.nashconv import joint_policy, pure_policy
from algorithms.policies import Policy
from algorithms.policies.network import uniform_network
from algorithms.self_play.matches import hand_returns, hand_streams
from algorithms.support import budget
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import BridgeError

KUHN_UNIFORM = 11 / 12
REPEATS = 400


def exact_gain(target, seat, response):
    """What a response gains, by the tree."""
    tree = target.game.tree
    players = target.game.num_players
    tables = [response if player == seat else target.policy for player in range(players)]
    before, after = (
        expected_values(tree, t)[seat] for t in (target.policy, joint_policy(tree, tables))
    )
    return after - before


def candidates(target, seat):
    """A dozen different responses, each of which gains 0.05 chips per hand exactly."""
    found = {}
    for number in range(100):
        response = pure_policy(target.game.tree, target.game.tree.random(number).argmax(axis=1))
        if len(found) < 12 and exact_gain(target, seat, response) > 0.05:
            found[f"{number}"] = weakened(target, seat, response)
    return found


def weakened(target, seat, response):
    """The mixture of a response with the policy itself that gains 0.05."""
    low = 0.0
    high = 1.0
    for _ in range(40):
        share = (low + high) / 2
        mixture = share * response + (1 - share) * target.policy
        low, high = (low, share) if exact_gain(target, seat, mixture) > 0.05 else (share, high)
    return mixture


def without_tree(game):
    """The same game as if it were too large for a tree."""
    return load_game(game.name, max_nodes=5)


@pytest.mark.parametrize(
    "name", ["kuhn_poker", "leduc_poker", "liars_dice(numdice=1,dice_sides=3)"]
)
def test_the_tree_and_the_states_play_the_same_hands(name):
    game = load_game(name)
    table = game.tree.random(3)
    streams = hand_streams(5, 500)
    infosets = {observed.tobytes(): i for i, observed in enumerate(game.network_inputs())}

    def policy(observations, masks):
        return table[[infosets[observed.tobytes()] for observed in observations]]

    on_tree, on_states = (hand_returns(game, [play] * 2, streams) for play in (table, policy))
    np.testing.assert_array_equal(on_tree, on_states)


def test_common_random_numbers_reduce_the_variance():
    game = load_game("leduc_poker")
    target = Target(game, game.tree.uniform())
    response = 0.9 * target.policy + 0.1 * game.tree.random(1)
    streams = hand_streams(0, 20_000)
    (paired,) = response_gains(target, 0, {"near": response}, streams)
    other_hands = target.returns(0, response, hand_streams(1, 20_000))
    apart = other_hands - target.returns(0, target.policy, streams)
    assert paired.standard_error < 0.7 * apart.std() / 20_000**0.5


def coverage(bound_of):
    """How often the interval of a bound contains what its responses gain exactly, on Kuhn."""
    game = load_game("kuhn")
    target = Target(game, game.tree.uniform())
    responses = [candidates(target, seat) for seat in range(2)]
    covered = 0
    for seed in range(REPEATS):
        chosen = [bound_of(target, seat, responses[seat], seed) for seat in range(2)]
        seats = tuple(SeatBound(seat, gain, 1, 0.0) for seat, gain in enumerate(chosen))
        low, high = LowerBound("kuhn", seats, 1_000, 1).interval
        covered += low <= 0.1 <= high
    return covered / REPEATS


def test_the_interval_covers_the_gain_of_the_chosen_responses_in_95_percent():
    share = coverage(lambda *what: choose_and_measure(*what[:3], hands=1_000, seed=what[3]))
    assert 0.93 <= share <= 0.97


def test_choosing_and_measuring_on_the_same_hands_would_not():
    def on_the_same_hands(target, seat, responses, seed):
        streams = hand_streams((seed, seat), 1_000)
        return max(response_gains(target, seat, responses, streams), key=lambda found: found.gain)

    assert coverage(on_the_same_hands) < 0.85


def test_the_policy_itself_is_chosen_if_every_response_loses():
    game = load_game("kuhn")
    target = Target(game, nash(0))
    responses = {"random": game.tree.random(0), "uniform": game.tree.uniform()}
    assert choose_and_measure(target, 1, responses, hands=5_000, seed=0) == NO_GAIN


def test_uniform_play_in_kuhn_is_found_out():
    game = load_game("kuhn")
    bound = lower_bound(game, game.tree.uniform(), decisions=60_000)
    assert bound.hands == budget.TREE_HANDS
    exact = evaluate_policy(game.tree, game.tree.uniform()).gains
    for seat, gain in zip(bound.seats, exact, strict=True):
        assert 0.9 * gain < seat.chosen.gain < gain + 4 * seat.chosen.standard_error
    assert bound.interval[0] < KUHN_UNIFORM
    assert bound.interval[0] < bound.nash_conv_at_least < bound.interval[1]


def test_nothing_is_found_against_an_equilibrium_on_one_thread_and_nothing_is_below_0():
    game = load_game("kuhn")
    before = torch.get_num_threads()
    seen = set()
    torch.set_num_threads(2)
    try:
        options = {"progress": lambda done, note: seen.add(torch.get_num_threads())}
        bound = lower_bound(game, nash(0), decisions=5_000, hands=20_000, **options)
        assert (seen, torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(before)
    assert bound.nash_conv_at_least >= 0
    assert bound.interval[0] == 0


def test_a_bound_on_states_needs_no_tree():
    game = without_tree(load_game("kuhn_poker"))
    reported = []
    options = {"hands": 5_000, "progress": lambda *report: reported.append(report)}
    policy = uniform_network(game).probabilities
    bound = lower_bound(game, policy, decisions=50_000, **options)
    assert bound.nash_conv_at_least > 0.6 * KUHN_UNIFORM
    assert 0 <= bound.interval[0] <= KUHN_UNIFORM
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert reported[-1][0] <= 4 * 50_000
    assert {note for _, note in reported} == {
        f"player_{seat}, {start}, seed 0" for seat in range(2) for start in STARTS
    }


@pytest.mark.slow
def test_ray_finds_the_same_as_one_run_after_another():
    game = load_game("kuhn")
    reported = []
    options = {"decisions": 2_000, "hands": 1_000, "seeds": (3, 4)}
    alone = lower_bound(game, game.tree.uniform(), **options)
    options |= {"cpus": 2, "progress": lambda *report: reported.append(report)}
    together = lower_bound(game, game.tree.uniform(), **options)
    assert [seat.chosen for seat in alone.seats] == [seat.chosen for seat in together.seats]
    assert reported[-1] == (16_000, "8 of 8 runs")


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"decisions": 0}, "decisions=0: want at least 1"),
        ({"hands": 10}, "hands=10: want at least 1,000"),
        ({"seeds": ()}, "seeds=[]: want different whole numbers from 0 up"),
        ({"seeds": (1, 1)}, "seeds=[1, 1]: want different whole numbers from 0 up"),
        ({"seeds": (-1,)}, "seeds=[-1]: want different whole numbers from 0 up"),
        ({"cpus": 0}, "cpus=0: want at least 1"),
    ],
)
def test_impossible_budgets_are_refused_before_the_work_starts(options, want):
    game = load_game("kuhn")
    with pytest.raises(UsageError) as error:
        lower_bound(game, game.tree.uniform(), **options)
    assert str(error.value) == want


FOUND = LowerBound(
    "leduc_poker",
    (
        SeatBound(0, Gain("imitation, seed 0, greedy", 0.1, 0.003), 2, 61.2),
        SeatBound(1, Gain("scratch, seed 0, sampled", 0.2, 0.004), 2, 58.6),
    ),
    200_000,
    2_000_000,
)
NOTHING = LowerBound(
    "leduc_poker", tuple(SeatBound(s, NO_GAIN, 2, 60.0) for s in range(2)), 1000, 9
)
UNLUCKY = LowerBound("kuhn", (SeatBound(0, Gain("unlucky", -0.001, 0.001), 2, 1.0),), 1000, 9)


WORDS = """\
model.zip: NashConv at least 0.3000 (95% interval 0.2902-0.3098)

seat      chosen response                 gain      95% interval  runs  CPU time  exact gain  share
player_0  imitation, seed 0, greedy  +0.100000  0.0941 to 0.1059     2      61 s   +0.150000    67%
player_1  scratch, seed 0, sampled   +0.200000  0.1922 to 0.2078     2      59 s   +0.250000    80%

each run learned from 2,000,000 decisions; each gain was measured on 200,000 fresh hands
uniform play, measured in the same way: no gain found, NashConv at least 0
exact NashConv 0.4: the responses found 75%"""


def test_a_bound_in_words():
    assert to_text("model.zip", FOUND, uniform=NOTHING, exact=(0.15, 0.25)) == WORDS
    first, second, *_ = to_text("model.zip", NOTHING).splitlines()
    assert first == "model.zip: no gain found, NashConv at least 0"
    assert "does not show that NashConv is small" in second


def test_a_bound_as_json_is_never_called_nash_conv():
    document = json.loads(json.dumps(to_json("model.zip", FOUND, uniform=UNLUCKY)))
    assert document["nash_conv_at_least"] == pytest.approx(0.3)
    assert document["interval"] == pytest.approx([0.2902, 0.3098], abs=1e-6)
    assert document["uniform_nash_conv_at_least"] == 0
    assert document["uniform_interval"] == pytest.approx([0, 0.00096], abs=1e-6)
    assert [response["player"] for response in document["responses"]] == [0, 1]
    assert "nash_conv" not in document


def test_few_decisions_are_enough_for_a_bound_and_seeds_are_a_list():
    """Fewer than a hand of this game has: responses are trained on what there is."""
    policy = Policy.uniform("dark_hex(num_rows=4,num_cols=3)")
    bound = policy.lower_bound(decisions=20, hands=1_000)
    assert all(np.isfinite(gain) for gain in bound.gains)
    with pytest.raises(BridgeError, match="want a list of whole numbers"):
        policy.lower_bound(seeds=3)
