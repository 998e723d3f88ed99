"""Trained best responses: a lower bound of NashConv in games of any size.

NashConv is the sum, over seats i, of the gain of that seat's best policy against the others:

    NashConv(p) = sum_i max_b [u_i(b, p_-i) - u_i(p)]

Where the maximum cannot be computed, any single b in its place gives a lower bound. Here b is
trained: p is frozen in the other seats inside the environment, which leaves a stationary
single-agent problem for stock `MaskablePPO`. Unlike in self-play (`learner`) no average is needed;
the learning rate and the entropy bonus fall to 0. Large inputs, such as chips, are scaled while the
network learns (`input_scales`). How much of the maximum it finds is unknown, so

- a small bound does not show that NashConv is small, and
- bounds do not rank policies: the smaller one may belong to the policy that is harder to learn
  against.

For each seat:

1. Two networks are trained per seed: one from scratch, and one that first imitates 0.8 p + 0.2
   uniform play, to begin near u_i(p) even if p is hard to beat.
2. Candidates are each network greedy and sampled, and p itself, whose gain is 0 exactly. All play
   the same hands, a quarter as many as in step 3, and the one that gains most is chosen.
3. The chosen one is measured once, on a fixed number of fresh hands. Choosing and measuring on the
   same hands would overstate the gain: the largest of several noisy figures is too large on
   average.

The estimate is therefore unbiased for the chosen response, and its 95% interval contains
u_i(b, p_-i) - u_i(p) in 95% of repetitions. Both terms are estimated with common random numbers.
This is valid because each term alone is the mean of independent hands, and reduces the variance of
the difference because a response often agrees with p (`matches`).
"""

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import nn

from algorithms.compiled.simulator import running_sums
from algorithms.games import Game
from algorithms.policies import Policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import as_network, network_table
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.self_play.input_scales import ScaledInputs
from algorithms.self_play.learner import ILLEGAL
from algorithms.self_play.matches import SeatPolicy, hand_returns, hand_streams, interval_around
from algorithms.self_play.training_run import fast_torch
from algorithms.support import budget, command
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, UInt64Array
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance, progress

ITSELF = "the policy itself"  # the candidate that gains nothing

STARTS = ("imitation", "scratch")  # a network's start: after imitating p, or with random weights
N_ENVS = 1024
MIN_ENVS = 64  # in a short run, which plays fewer hands at a time to reach MIN_UPDATES
MIN_UPDATES = 32
N_STEPS = 8
BATCH_SIZE = 1024
LEARNING_RATE = 3e-3  # falls to 0
ENT_COEF = 0.2  # keeps all actions in play until their values are known
ENT_COEF_END = 0.002  # falls geometrically
HIDDEN = (128, 128)
IMITATED_SHARE = 0.8  # share of the policy in a mixture with uniform play
IMITATED_DECISIONS = 100_000
IMITATION_EPOCHS = 3
IMITATION_RATE = 3e-3  # falls to 1%


@dataclass(frozen=True, slots=True)
class Gain:
    """What a candidate gains over the policy itself, in chips per hand."""

    candidate: str
    gain: float
    standard_error: float


NO_GAIN = Gain(ITSELF, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SeatBound:
    """The gain of one seat's chosen response on fresh hands, and the runs that found it."""

    seat: int
    chosen: Gain
    runs: int  # training runs
    cpu_seconds: float  # of all training runs


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound of a policy's NashConv, in chips per hand.

    Attributes:
        game: name of the game.
        seats: chosen response of each seat, with its gain and standard error.
        hands: number of hands on which each seat's response was measured.
        decisions: number of decisions that each training run learned from.
    """

    game: str
    seats: tuple[SeatBound, ...]
    hands: int
    decisions: int

    @property
    def gains(self) -> tuple[float, ...]:
        """The gain of each seat's response; by chance it may be slightly below 0."""
        return tuple(seat.chosen.gain for seat in self.seats)

    @property
    def standard_error(self) -> float:
        """The standard error of the sum of the gains; seats are measured on different hands."""
        return math.hypot(*(seat.chosen.standard_error for seat in self.seats))

    @property
    def nash_conv_at_least(self) -> float:
        """The sum of the gains, or 0 if it is negative: NashConv is never negative."""
        return max(0.0, sum(self.gains))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the sum of the gains, cut off at 0."""
        low, high = interval_around(sum(self.gains), self.standard_error)
        return max(0.0, low), max(0.0, high)

    @property
    def found(self) -> bool:
        """Whether a response was chosen rather than the policy itself, in any seat."""
        return any(seat.chosen.candidate != ITSELF for seat in self.seats)

    def share_of(self, gains: Sequence[float]) -> float | None:
        """The share of all players' exact gains that was found, if there is anything to gain."""
        return self.nash_conv_at_least / sum(gains) if sum(gains) > 0 else None


# ---------------------------------------------------------------------------------------------
# All runs
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """The policy of all seats that responses are trained against, on the tree or on states."""

    game: Game
    policy: SeatPolicy

    def response(self, network: nn.Module, *, greedy: bool) -> SeatPolicy:
        """The policy of a network of logits, as a table or a function like `policy`."""
        player = as_network(network, self.game)
        if greedy:
            player = player.greedy()
        if callable(self.policy):
            return player.probabilities
        table: Float64Array = network_table(player, self.game)
        return table

    def returns(self, seat: int, response: SeatPolicy, streams: UInt64Array) -> Float64Array:
        """A seat's return in each hand with a response, or with the policy: `(hands,)`."""
        policies = [self.policy] * self.game.num_players
        policies[seat] = response
        return hand_returns(self.game, policies, streams)[:, seat]


@dataclass(frozen=True, slots=True)
class Run:
    """One training run."""

    target: Target
    seat: int
    start: str
    seed: int
    decisions: int

    @property
    def name(self) -> str:
        """The name of the run among those of its seat."""
        return f"{self.start}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class TrainedResponse:
    """What a training run returns."""

    network: nn.Module  # observations `(n, size)` to logits `(n, A)`
    cpu_seconds: float


@fast_torch()
def lower_bound(  # noqa: PLR0913  # options by name
    game: Game,
    policy: SeatPolicy,
    *,
    decisions: int = budget.DECISIONS,
    hands: int | None = None,
    seeds: Sequence[int] = budget.SEEDS,
    cpus: int = 1,
    address: str | None = None,
    progress: Advance | None = None,
) -> LowerBound:
    """Train responses to a policy in every seat, and measure the best one of each.

    The policy of all seats is a table `(I, A)`, played on the game's tree, or a function from
    observations and masks to probabilities, played on OpenSpiel's states. The options are
    those of `Policy.lower_bound`.
    """
    if hands is None:
        hands = budget.HANDS if callable(policy) else budget.TREE_HANDS
    _require_possible(decisions=decisions, hands=hands, cpus=cpus, seeds=seeds)
    target = Target(game, policy)
    players = range(game.num_players)
    runs = [
        Run(target=target, seat=seat, start=start, seed=seed, decisions=decisions)
        for seat, seed, start in itertools.product(players, seeds, STARTS)
    ]
    show = progress or (lambda done, note: None)
    if cpus == 1 and address is None:
        trained = _train_in_turn(runs, show)
    else:
        trained = _train_on_ray(runs, show, cpus=cpus, address=address)
    bounds = []
    for seat in players:
        of_seat = {
            run.name: result for run, result in zip(runs, trained, strict=True) if run.seat == seat
        }
        responses = {}
        for name, result in of_seat.items():
            for manner in ("greedy", "sampled"):
                response = target.response(result.network, greedy=manner == "greedy")
                responses[f"{name}, {manner}"] = response
        bound = SeatBound(
            seat=seat,
            chosen=choose_and_measure(target, seat, responses, hands=hands, seed=seeds[0]),
            runs=len(of_seat),
            cpu_seconds=sum(result.cpu_seconds for result in of_seat.values()),
        )
        bounds.append(bound)
    return LowerBound(game=game.name, seats=tuple(bounds), hands=hands, decisions=decisions)


def _require_possible(*, decisions: int, hands: int, cpus: int, seeds: Sequence[int]) -> None:
    """Raise an error for options that cannot be used."""
    least = {"decisions": (decisions, 1), "hands": (hands, budget.MIN_HANDS), "cpus": (cpus, 1)}
    for name, (value, low) in least.items():
        if not isinstance(value, int | np.integer):
            raise UsageError(f"{name}={value!r}: want a whole number")
        if value < low:
            raise UsageError(f"{name}={value}: want at least {low:,}")
    if not isinstance(seeds, Sequence) or not all(isinstance(seed, int) for seed in seeds):
        raise UsageError(f"seeds={seeds!r}: want a list of whole numbers such as [0, 1]")
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds={list(seeds)}: want different whole numbers from 0 up")


def bound_with_bar(name: str, policy: Policy, **options: Any) -> LowerBound:
    """The lower bound of a policy by the options of `Policy.lower_bound`, with a progress bar."""
    decisions = options.get("decisions", budget.DECISIONS)
    seeds = options.get("seeds", budget.SEEDS)
    num_runs = policy.game.num_players * len(seeds) * len(STARTS)
    with progress(f"responding to {name}", num_runs * decisions) as bar:
        return policy.lower_bound(progress=bar, **options)


def _train_in_turn(runs: Sequence[Run], progress: Advance) -> list[TrainedResponse]:
    """Train one after the other, and report progress all the time."""
    trained: list[TrainedResponse] = []

    def watch(done: int) -> None:
        run = runs[len(trained)]
        before = len(trained) * run.decisions
        progress(before + min(done, run.decisions), f"player_{run.seat}, {run.name}")

    for run in runs:
        trained.append(train_response(run, watch))
    return trained


def _train_on_ray(
    runs: Sequence[Run], progress: Advance, *, cpus: int, address: str | None
) -> list[TrainedResponse]:
    """Train on one core per run; progress is reported when a run ends."""
    from algorithms.support.ray_cluster import connected

    with connected(address, cpus):
        import ray

        train = ray.remote(num_cpus=1)(train_response)
        answers = [train.remote(run) for run in runs]
        waiting = answers
        while waiting:
            ready, waiting = ray.wait(waiting)
            ray.get(ready)  # raises if the run failed
            ended = len(runs) - len(waiting)
            progress(ended * runs[0].decisions, f"{ended} of {len(runs)} runs")
        trained: list[TrainedResponse] = ray.get(answers)
    return trained


# ---------------------------------------------------------------------------------------------
# Training one response
# ---------------------------------------------------------------------------------------------


@fast_torch()
def train_response(
    run: Run, watch: Callable[[int], None] = lambda decisions: None
) -> TrainedResponse:
    """The result of a run; `watch` is called with the number of decisions so far."""
    began = time.process_time()
    n_envs = min(N_ENVS, max(MIN_ENVS, run.decisions // (MIN_UPDATES * N_STEPS)))
    game = run.target.game
    policy = run.target.policy
    others = {seat: policy for seat in range(game.num_players) if seat != run.seat}
    hands = SelfPlayVecEnv(n_envs, game, seed=run.seed, opponents=others)
    played = _play_mixture(policy, hands, min(IMITATED_DECISIONS, run.decisions))
    model: Any = MaskablePPO(
        "MlpPolicy",
        _ScaledRewards(hands, played.spread),
        n_steps=N_STEPS,
        batch_size=min(BATCH_SIZE, n_envs * N_STEPS),
        n_epochs=1,
        learning_rate=lambda remaining: LEARNING_RATE * remaining,
        gamma=1.0,
        gae_lambda=0.95,
        clip_range=0.2,
        policy_kwargs={"net_arch": list(HIDDEN), "activation_fn": nn.ReLU},
        seed=run.seed,
        device="cpu",
    )
    scaled_inputs = ScaledInputs(model.policy, played.input_scales)
    scaled_inputs.divide_initial_weights()
    if run.start == "imitation":
        _imitate(model.policy, played, scaled_inputs)
    with scaled_inputs.learning():
        model.learn(run.decisions, callback=_EntropySchedule(watch))
    return TrainedResponse(actor_of(model.policy), time.process_time() - began)


class _ScaledRewards(VecEnvWrapper):
    """Divides rewards by their spread, which makes the value loss independent of the stakes."""

    def __init__(self, venv: SelfPlayVecEnv, spread: float) -> None:
        super().__init__(venv)
        self._spread = np.float32(spread)

    def reset(self) -> Any:
        """Deal all hands anew."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """Play the actions."""
        observations, rewards, ended, infos = self.venv.step_wait()
        return observations, rewards / self._spread, ended, infos


class _EntropySchedule(BaseCallback):
    """Lowers the entropy bonus, and reports progress."""

    model: Any

    def __init__(self, watch: Callable[[int], None]) -> None:
        super().__init__()
        self._watch = watch

    def _on_rollout_start(self) -> None:
        done = self.model.num_timesteps / self.model._total_timesteps
        self.model.ent_coef = ENT_COEF * (ENT_COEF_END / ENT_COEF) ** done
        self._watch(self.model.num_timesteps)

    def _on_step(self) -> bool:
        return True


class _Played(NamedTuple):
    """n decisions of finished hands."""

    observations: torch.Tensor  # (n, size)
    masks: torch.Tensor  # (n, A)
    probabilities: torch.Tensor  # (n, A) of the mixture that was played
    returns: torch.Tensor  # (n,) of their hands, divided by `spread`
    spread: float  # the standard deviation of returns

    @property
    def input_scales(self) -> Float32Array:
        """The largest absolute value of each input, at least 1: `(size,)`."""
        largest = self.observations.abs().amax(dim=0)
        return np.asarray(largest.clamp(min=1))


def _play_mixture(policy: SeatPolicy, hands: SelfPlayVecEnv, decisions: int) -> _Played:
    """Play hands in which a seat mixes the policy with uniform play."""
    rng = np.random.default_rng(0)
    simulator: Any = hands.simulator
    # One array `(hands, ...)` per step.
    observations: list[Float32Array] = []
    masks: list[BoolArray] = []
    mixtures: list[Float32Array] = []
    rewards: list[Float32Array] = []
    ended: list[BoolArray] = []
    steps = math.ceil(decisions / hands.num_envs)
    any_ended = False
    observation: Any = hands.reset()
    while len(ended) < steps or not any_ended:  # at least one hand has a return
        mask = hands.action_masks()
        if callable(policy):
            probabilities = simulator.probabilities_of(policy)
        else:
            probabilities = np.asarray(policy[simulator.infosets], np.float64)
        uniform = mask / mask.sum(axis=1, keepdims=True)
        mixture = IMITATED_SHARE * probabilities + (1 - IMITATED_SHARE) * uniform
        is_passed = running_sums(mixture) <= rng.random((len(mixture), 1))
        hands.step_async(is_passed.sum(axis=1))
        observations.append(observation)
        masks.append(mask)
        mixtures.append(mixture.astype(np.float32))
        observation, reward, has_ended, _ = hands.step_wait()
        rewards.append(reward)
        ended.append(has_ended)
        any_ended = any_ended or bool(has_ended.any())

    ends = np.stack(ended)  # (steps, hands)
    returns = np.stack(rewards)  # (steps, hands)
    spread = float(returns[ends].std()) or 1.0
    # A hand's return belongs to all its decisions, of which only the last was paid.
    for step in reversed(range(len(returns) - 1)):
        returns[step] = np.where(ends[step], returns[step], returns[step + 1])
    # A decision belongs to a finished hand if one ends at its step or later.
    finished = np.logical_or.accumulate(ends[::-1])[::-1]
    return _Played(
        observations=torch.as_tensor(np.stack(observations)[finished]),
        masks=torch.as_tensor(np.stack(masks)[finished]),
        probabilities=torch.as_tensor(np.stack(mixtures)[finished]),
        returns=torch.as_tensor((returns / np.float32(spread))[finished]),
        spread=spread,
    )


def _imitate(policy: Any, played: _Played, scaled_inputs: ScaledInputs) -> None:
    """Fit an SB3 policy's actor to the mixture, and its critic to the returns."""
    returns = played.returns
    actor = actor_of(policy)
    critic = nn.Sequential(
        policy.vf_features_extractor, policy.mlp_extractor.value_net, policy.value_net
    )
    optimizer = torch.optim.Adam(policy.parameters())
    steps = -(-IMITATION_EPOCHS * len(returns) // BATCH_SIZE)
    with scaled_inputs.learning(optimizer):
        for share in np.linspace(1, 0.01, steps):
            optimizer.param_groups[0]["lr"] = IMITATION_RATE * share
            batch = torch.randint(len(returns), (BATCH_SIZE,))
            seen = played.observations[batch]
            logits = actor(seen).masked_fill(~played.masks[batch], ILLEGAL)
            log_probabilities = logits.log_softmax(1)
            cross_entropy = -(played.probabilities[batch] * log_probabilities).sum(1).mean()
            value_loss = nn.functional.mse_loss(critic(seen)[:, 0], returns[batch])
            optimizer.zero_grad()
            (cross_entropy + value_loss).backward()
            optimizer.step()


# ---------------------------------------------------------------------------------------------
# Choosing and measuring
# ---------------------------------------------------------------------------------------------


def choose_and_measure(
    target: Target, seat: int, responses: Mapping[str, SeatPolicy], *, hands: int, seed: int
) -> Gain:
    """Choose the response that gains most, on a quarter as many hands; measure it on fresh ones."""
    choosing = hand_streams((seed, seat, 0), hands // 4)
    fresh = hand_streams((seed, seat, 1), hands)
    gains = response_gains(target, seat, responses, choosing)
    best = max(gains, key=lambda response: response.gain)
    if best.gain <= 0:
        return NO_GAIN
    chosen = {best.candidate: responses[best.candidate]}
    return response_gains(target, seat, chosen, fresh)[0]


def response_gains(
    target: Target, seat: int, responses: Mapping[str, SeatPolicy], streams: UInt64Array
) -> list[Gain]:
    """The gain of each response over the policy itself, on the hands of these random streams."""
    own_returns = target.returns(seat, target.policy, streams)
    gains = []
    for name, response in responses.items():
        difference = target.returns(seat, response, streams) - own_returns
        gain = Gain(
            candidate=name,
            gain=float(difference.mean()),
            standard_error=float(difference.std(ddof=1)) / math.sqrt(len(difference)),
        )
        gains.append(gain)
    return gains


# ---------------------------------------------------------------------------------------------
# A bound in words and as JSON: never presented as NashConv itself
# ---------------------------------------------------------------------------------------------


def to_text(
    source: str,
    bound: LowerBound,
    *,
    uniform: LowerBound | None = None,
    exact: Sequence[float] | None = None,
) -> str:
    """The bound, the chosen responses, and the budget that found them.

    `uniform` is the bound of uniform play; of each player's `exact` gain the share is printed.
    """
    header = ["seat", "chosen response", "gain", "95% interval", "runs", "CPU time"]
    rows = []
    for seat in bound.seats:
        chosen = seat.chosen
        low, high = interval_around(chosen.gain, chosen.standard_error)
        span = f"{low:z.4f} to {high:z.4f}" if low < high else "-"
        row = [f"player_{seat.seat}", chosen.candidate, f"{chosen.gain:+z.6f}", span]
        rows.append([*row, f"{seat.runs}", f"{seat.cpu_seconds:.0f} s"])
    if exact is not None:
        header += ["exact gain", "share"]
        for row, gain, most in zip(rows, bound.gains, exact, strict=True):
            row += [f"{most:+z.6f}", f"{gain / most:.0%}" if most > 0 else "-"]
    lines = [f"{source}: {_at_least(bound)}"]
    if not bound.found:
        lines += ["no response won more than the policy: that does not show that NashConv is small"]
    lines += [
        "",
        command.table(header, rows, left=2),
        "",
        f"each run learned from {bound.decisions:,} decisions; "
        f"each gain was measured on {bound.hands:,} fresh hands",
    ]
    if uniform is not None and uniform is not bound:
        lines.append(f"uniform play, measured in the same way: {_at_least(uniform)}")
    if exact is not None:
        share = bound.share_of(exact)
        found_share = "" if share is None else f": the responses found {share:.0%}"
        lines.append(f"exact NashConv {sum(exact):.6g}{found_share}")
    return "\n".join(lines)


def _at_least(bound: LowerBound) -> str:
    if not bound.found:
        return "no gain found, NashConv at least 0"
    low, high = bound.interval
    return f"NashConv at least {bound.nash_conv_at_least:.4f} (95% interval {low:.4f}-{high:.4f})"


def to_json(source: str, bound: LowerBound, *, uniform: LowerBound | None = None) -> dict[str, Any]:
    """One object for machines; it has no `nash_conv`."""
    document: dict[str, Any] = {
        "source": source,
        "game": bound.game,
        "nash_conv_at_least": bound.nash_conv_at_least,
        "interval": list(bound.interval),
        "gains": list(bound.gains),
        "responses": [
            {
                "player": seat.seat,
                "response": seat.chosen.candidate,
                "gain": seat.chosen.gain,
                "standard_error": seat.chosen.standard_error,
                "runs": seat.runs,
                "cpu_seconds": round(seat.cpu_seconds, 1),
            }
            for seat in bound.seats
        ],
        "decisions": bound.decisions,
        "hands": bound.hands,
    }
    if uniform is not None:
        document["uniform_nash_conv_at_least"] = uniform.nash_conv_at_least
        document["uniform_interval"] = list(uniform.interval)
    return document
