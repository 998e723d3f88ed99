"""Self-play with PPO that approaches an equilibrium: the whole algorithm, in one module.

One policy plays all seats. PPO collects a rollout, `SeatRolloutBuffer` computes advantages along
each seat's own decisions, and PPO's loss L is differentiated. What is added here:

**1. Magnetic mirror descent** (Sokota et al. 2023). Gradient ascent in self-play circles around
an equilibrium. A pull towards a magnet m, a slow copy of the policy p, damps the rotation:

    L + kl * sigma * mean over decisions of KL(p || m),    log m += magnet_rate * (log p - log m)

sigma is the standard deviation of returns under uniform play, which makes `kl` independent of the
game's stakes. Since m follows p, the pull does not keep p away from the equilibrium, as an entropy
bonus would. The kl weight falls geometrically from `kl` to `kl_end`.

**2. A preconditioned gradient per information set** (games with a tree). PPO's gradient of the
logits z(s, a) is proportional to the frequency of s and the probability of a, so rare information
sets and improbable actions hardly learn. With w(s) the share of decisions at s, and n(s) its
samples in a batch, the step is

    d(s, a) = step_size * min(1, sqrt(n(s) / 1000)) * g(s, a),      centred over legal actions,
    g(s, a) = -(dL / dz(s, a)) / (w(s) * sigma * (p(a|s) + 0.05))

NeuRD (Hennes et al. 2020) leaves out p(a|s) for the same reason. A table takes the step. A network
is fitted to z + d in `epochs` steps of Adam, with information sets weighted by sqrt(w(s)), and with
little momentum (0.5), since momentum from the last fit makes the policy rotate.

**3. The average policy.** Of the policies p_1, p_2, ... before each update,

    average(a|s) = sum_t t^2 r_t(s) p_t(a|s) / sum_t t^2 r_t(s)

where r_t(s) is the player's own reach probability of s under p_t: the average plays like one p_t
that is drawn for the whole hand.

**4. Networks without statistics per information set** (games without a tree). PPO's own gradient,
an entropy bonus that falls from `ent_coef` to `ent_coef_end`, the KL pull of (1), and instead of
(3) an average of the weights, sum_t t(t+1) theta_t / sum_t t(t+1). The averaged network is also the
magnet.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeAlias

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

from algorithms.compiled.jit import compiled
from algorithms.compiled.nashconv import nash_convs, reach_probabilities, returns_std
from algorithms.compiled.simulator import running_sums
from algorithms.games import Game, as_game
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import masked_softmax, network_table
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.curve import COLUMNS, Point, Recorder
from algorithms.self_play.environments import (
    last_step_of,
    observation_space,
    require_self_play,
    steps_allowed,
)
from algorithms.self_play.settings import CURVE_POINTS, Kind, default, default_points, kl_end_after
from algorithms.self_play.states import StateSimulator
from algorithms.support.arrays import Float64Array, Int64Array
from algorithms.support.errors import UsageError
from algorithms.tree import Tree

FULL_STEP_SAMPLES = 1000.0  # samples per batch with which an information set takes a full step
PROBABILITY_FLOOR = 0.05  # added to probabilities before dividing by them
MAGNET_POWER = 0.7  # the magnet's rate falls with the samples of an information set to this power
SHARE_RATE = 0.01  # weight of the latest batch in the shares w(s), after the first 1 / SHARE_RATE
VALUE_SAMPLES = 3000.0  # a table's value is the mean of about this many of the latest returns
LOWEST = 0.02  # the step size and the magnet's rate fall to this share at the end
LOWEST_FITTED = 0.1  # the same for a network: smaller steps would be lost in errors of the fit
ILLEGAL = -1e8  # the logit of an illegal action, as in sb3_contrib
UNIFORM_HANDS = 5_000  # hands that estimate sigma in games without a tree
SCHEDULED = ("step_size", "kl", "kl_end", "magnet_rate", "ent_coef_end")

Given: TypeAlias = dict[str, float | None]  # the settings in SCHEDULED; None: the default
Measure: TypeAlias = Callable[[nn.Module], float]  # of a network in a game without a tree


class SelfPlay(BaseCallback):
    """The callback that makes stock `MaskablePPO` learn by self-play.

        model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"), n_steps=8)
        model.learn(1_000_000, callback=SelfPlay())

    It installs `SeatRolloutBuffer`, changes PPO's gradients with hooks as in this module's
    equations, averages the policies, and measures them. PPO's code, loss and optimizer stay the
    same. Settings that are None have the defaults of `algorithms.train_ppo`.

    Args:
        step_size: step of an information set per update, in games with a tree.
        kl: weight of the KL divergence from the magnet at the start.
        kl_end: weight of the KL divergence from the magnet at the end.
        magnet_rate: rate at which the magnet follows the policy; 0 keeps it fixed.
        ent_coef_end: weight of the entropy at the end, in games without a tree.
        total_steps: number of steps that the schedules span; by default those of `learn`.
        points: number of points of the learning curve after the first one.
        measure: function that measures a network in a game without a tree; None: no figures there.
        measure_name: name of the figures of the learning curve.
        watch: function of each point of the learning curve, and in between of the latest figures.
    """

    model: Any  # a MaskablePPO; SB3 types it as any algorithm
    learner: Any  # a TreeLearner or a NetworkLearner, set when the callback gets its model

    def __init__(  # noqa: PLR0913  # keyword options
        self,
        *,
        step_size: float | None = None,
        kl: float | None = None,
        kl_end: float | None = None,
        magnet_rate: float | None = None,
        ent_coef_end: float | None = None,
        total_steps: int | None = None,
        points: int | None = None,
        measure: Measure | None = None,
        measure_name: str = COLUMNS[2],
        watch: Callable[[Point], None] | None = None,
    ) -> None:
        super().__init__()
        values = step_size, kl, kl_end, magnet_rate, ent_coef_end
        self._given = dict(zip(SCHEDULED, values, strict=True))
        self._total_steps, self._points, self._measure = total_steps, points, measure
        self.recorder = Recorder(watch, measure=measure_name)

    @property
    def curve(self) -> list[Point]:
        """NashConv over steps, of the last policy and of the average."""
        return self.recorder.points

    def _init_callback(self) -> None:
        if hasattr(self, "learner"):
            return
        env, model = self.training_env, self.model
        require_self_play(env)
        game, on_tree = as_game(env.get_attr("game")[0]), env.get_attr("on")[0] == "tree"
        learner = TreeLearner if on_tree else NetworkLearner
        self.learner = learner(model, game, self._given, self._measure)
        if self._points is None:
            self._points = default_points(game) if on_tree or self._measure else CURVE_POINTS
        options = {
            name: getattr(model, name) for name in ("device", "gamma", "gae_lambda", "n_envs")
        }
        options |= {"players": game.num_players, "scale": self.learner.return_scale}
        spaces = model.observation_space, model.action_space
        self._buffer = SeatRolloutBuffer(
            model.n_steps, *spaces, last_step=lambda: last_step_of(env), **options
        )

    def _on_training_start(self) -> None:
        self._steps_allowed = ExitStack()
        self._steps_allowed.enter_context(steps_allowed(self.training_env))
        self._replaced = self.model.rollout_buffer, self.model.ent_coef
        self.model.rollout_buffer = self._buffer
        self.learner.start(self._total_steps or self.model._total_timesteps)
        self.recorder.start()

    def _on_rollout_start(self) -> None:
        if not all(bool(w.isfinite().all()) for w in self.model.policy.parameters()):
            raise diverged(self.model)
        self._average_and_record()
        self.model.ent_coef = self.learner.before_rollout(self._progress())

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._average_and_record(final=True)
        self.learner.stop()
        self.model.rollout_buffer, self.model.ent_coef = self._replaced
        self._steps_allowed.close()

    def _progress(self) -> float:
        """The fraction of the run that is done, from 0 to 1."""
        if self._total_steps:
            return min(1.0, float(self.model.num_timesteps) / self._total_steps)
        start, end = self.model._num_timesteps_at_start, self.model._total_timesteps
        return float((self.model.num_timesteps - start) / max(end - start, 1))

    def _average_and_record(self, *, final: bool = False) -> None:
        self.learner.add_to_average()
        steps, recorder = self.model.num_timesteps, self.recorder
        if recorder.is_due(steps, self._progress(), self._points or 0) or final:
            recorder.add(steps, self.learner.measures)
            self.logger.record(f"game/{recorder.measure}", recorder.points[-1].last)
            self.logger.record(f"game/{recorder.measure}_average", recorder.points[-1].average)
        else:
            recorder.show(steps)

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates and figures depend on."""
        carried = {name: torch.as_tensor(values) for name, values in self._buffer.carried.items()}
        states = self.learner.get_state(), self.recorder.get_state()
        return {"learner": states[0], "curve": states[1], "carried": carried}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self.learner.set_state(state["learner"])
        self.recorder.set_state(state["curve"])
        self._buffer.carried = {name: values.numpy() for name, values in state["carried"].items()}


def diverged(model: Any) -> UsageError:
    """The error of a run whose weights are no longer finite."""
    hint = "try a smaller step_size or learning_rate"
    return UsageError(f"the run diverged at step {model.num_timesteps:,}: {hint}")


def _schedule(given: Given, kind: Kind, total_steps: int) -> dict[str, float]:
    """The values of the settings in SCHEDULED."""
    values = {name: default(name, kind) if v is None else v for name, v in given.items()}
    if given["kl_end"] is None:
        values["kl_end"] = kl_end_after(kind, total_steps)
    return {name: value or 0.0 for name, value in values.items()}


def _between(first: float, last: float, progress: float) -> float:
    """A geometric interpolation between both ends, linear if one of them is 0."""
    if first > 0 and last > 0:
        return float(first ** (1 - progress) * last**progress)
    return float(first + (last - first) * progress)


def _change_gradient(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    tensor.register_hook(change)  # type: ignore[no-untyped-call]


def _is_learning(model: Any, logits: torch.Tensor) -> bool:
    """Whether PPO computes these logits for its gradient, from the buffer's latest batch."""
    return bool(logits.requires_grad and model.policy.training)


# --- Games with a tree ----------------------------------------------------------------------------


class TreeLearner:
    """Learning with statistics per information set: equations 1 to 3.

    An `InfosetPolicy` gets one gradient per information set of a rollout. The first one determines
    the target logits. A table takes them at once, by gradient descent with rate 1; a network is
    fitted to them in all epochs. A stock policy gets gradients decision by decision.
    """

    return_scale = 1.0  # values and returns are in chips

    def __init__(self, model: Any, game: Game, given: Given, measure: Measure | None) -> None:
        self._model, self._game, self._given = model, game, given
        sigma = returns_std(game.tree, game.tree.uniform()) or 1.0
        sigma = 1.0 if model.normalize_advantage else sigma
        self.statistics = InfosetStatistics(game.tree, sigma=sigma)
        self.statistics.move_magnet(self.last, rate=None)
        self._hooks = ExitStack()

    @property
    def last(self) -> Float64Array:
        """The model's current policy, `(I, A)`."""
        policy = self._model.policy
        if isinstance(policy, InfosetPolicy):
            return policy.outputs()[0]
        return np.asarray(network_table(actor_of(policy), self._game))

    @property
    def average(self) -> Float64Array:
        """The average policy, `(I, A)`."""
        return self.statistics.average

    def measures(self) -> tuple[float, float]:
        """NashConv of the last policy and of the average."""
        both = np.stack([self.last, self.average])
        last, average = nash_convs(self._game.tree, both).tolist()
        return last, average

    def start(self, total_steps: int) -> None:
        """Install the gradient hooks."""
        policy = self._model.policy
        stock = not isinstance(policy, InfosetPolicy)
        self._fitted = not stock and not policy.tabular
        self._schedule = _schedule(self._given, "network" if self._fitted else "table", total_steps)
        if stock:
            # Adding 0 makes 0.0 of -0.0, whose bits differ.
            known = self._game.network_inputs(policy.observation_space.shape[0]) + 0
            self._infoset_of = {seen.tobytes(): i for i, seen in enumerate(known)}
            self._hooks.callback(policy.action_net.register_forward_hook(self._on_logits).remove)
        else:
            policy.on_evaluation = self._on_evaluation
            self._hooks.callback(setattr, policy, "on_evaluation", None)

    def stop(self) -> None:
        """Remove the gradient hooks."""
        self._hooks.close()

    def add_to_average(self) -> None:
        """Add the current policy to the average."""
        self.statistics.add_to_average(self.last)

    def before_rollout(self, progress: float) -> float:
        """Set the step size and the pull, and move the magnet; return PPO's entropy coefficient.

        kl * sigma * KL(p || m) is an entropy bonus of that weight, which PPO adds by itself, and a
        gradient towards log m, which `InfosetStatistics.target_step` adds.
        """
        statistics, schedule = self.statistics, self._schedule
        left = 1 - (1 - (LOWEST_FITTED if self._fitted else LOWEST)) * progress
        statistics.step_size = schedule["step_size"] * left
        statistics.kl = _between(schedule["kl"], schedule["kl_end"], progress)
        statistics.move_magnet(self.last, rate=schedule["magnet_rate"] * left)
        self._first = True
        return statistics.kl * statistics.sigma

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates depend on."""
        return {name: getattr(self.statistics, name) for name in InfosetStatistics.STATE}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        for name in InfosetStatistics.STATE:
            setattr(self.statistics, name, state[name])

    def _on_evaluation(
        self, logits: torch.Tensor, values: torch.Tensor, infosets: Any, counts: torch.Tensor
    ) -> None:
        """Change the gradients of an `InfosetPolicy`."""
        statistics, vf_coef, fixed = self.statistics, self._model.vf_coef, logits.detach()
        if self._first:
            statistics.count(infosets, counts)

        def towards_target(gradient: torch.Tensor) -> torch.Tensor:
            if self._first:
                self._first = False
                self._target = fixed + statistics.target_step(gradient, fixed, infosets, counts)
                self._weights = statistics.weights(infosets) if self._fitted else torch.ones(1)
            return self._weights * (fixed - self._target)

        _change_gradient(logits, towards_target)
        if vf_coef and not self._fitted:
            # Scale PPO's gradient of the value loss to a step of 1 / samples: the mean of returns.
            samples = statistics.share[infosets] * statistics.batch_size * statistics.batches
            samples = samples.clamp(min=1, max=VALUE_SAMPLES)  # since the start, approximately
            scale = counts.sum() / (2 * vf_coef * torch.maximum(samples, counts))
            _change_gradient(values, lambda gradient: gradient * scale[:, None].float())

    def _on_logits(self, module: Any, inputs: Any, logits: torch.Tensor) -> None:
        """Change the gradients of a stock policy."""
        if not _is_learning(self._model, logits):
            return
        statistics, batch = self.statistics, self._model.rollout_buffer.batch
        try:
            seen = batch.observations.numpy() + 0
            met = torch.tensor([self._infoset_of[row.tobytes()] for row in seen])
        except KeyError:
            raise UsageError("an observation that no decision of this game has") from None
        infosets, which, counts = torch.unique(met, return_inverse=True, return_counts=True)
        statistics.count(infosets, counts)
        fixed = torch.empty(len(infosets), logits.shape[1])
        fixed[which] = logits.detach()

        def change(gradient: torch.Tensor) -> torch.Tensor:
            total = torch.zeros_like(fixed).index_add(0, which, gradient)
            step = statistics.target_step(total, fixed, infosets, counts)
            per_sample: torch.Tensor = statistics.weights(infosets) * step / counts[:, None]
            return -per_sample[which]

        _change_gradient(logits, change)


class InfosetStatistics:
    """What is known per information set, and the steps that follow from it: equations 1 to 3.

    `sigma` is the unit of advantages: the standard deviation of returns under uniform play, or 1
    where PPO normalises advantages.
    """

    STATE = ("share", "log_magnet", "batches", "batch_size", "total", "policies")

    def __init__(self, tree: Tree, *, sigma: float = 1.0) -> None:
        self._tree, self._legal, self.sigma = tree, torch.tensor(tree.legal), sigma
        self.step_size, self.kl = 1.0, 0.0  # of FULL_STEP_SAMPLES samples; the magnet's weight
        self.share = torch.zeros(len(tree.keys)).double()  # w(s), (I,)
        self.batches, self.batch_size = 0, 0  # how many so far, and the size of the latest
        self.log_magnet = torch.tensor(np.log(np.where(tree.legal, tree.uniform(), 1.0))).float()
        self.total = torch.zeros(tree.legal.shape).double()  # the numerator of equation 3, (I, A)
        self.policies = 0  # how many are in it

    def add_to_average(self, table: Float64Array) -> None:
        """Add a policy `(I, A)` to the average, the t-th with weight t^2."""
        self.policies += 1
        own_reach = reach_probabilities(self._tree, table)[self._tree.parent_sequence]
        self.total += torch.from_numpy(self.policies**2 * own_reach[:, None] * table)

    @property
    def average(self) -> Float64Array:
        """The average policy, `(I, A)`; uniform where no policy ever arrives."""
        total = self.total.numpy()
        weight = total.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(weight > 0, total / weight, self._tree.uniform())

    def move_magnet(self, table: Float64Array, *, rate: float | None) -> None:
        """Move the magnet towards a policy `(I, A)`, fully if `rate` is None.

        Otherwise it moves by `rate`, and less where samples are few.
        """
        log_policy = torch.as_tensor(np.log(np.maximum(table, 1e-30))).float()
        samples = (self.share * self.batch_size / FULL_STEP_SAMPLES).clamp(max=1)
        rates = torch.ones(1) if rate is None else (rate * samples**MAGNET_POWER)[:, None].float()
        way = torch.where(self._legal, log_policy - self.log_magnet, 0.0)
        self.log_magnet = self.log_magnet + rates * way

    def count(self, infosets: Any, counts: torch.Tensor) -> None:
        """Update the shares with the `counts` of `infosets` in a batch."""
        self.batches, self.batch_size = self.batches + 1, int(counts.sum())
        rate = max(1 / self.batches, SHARE_RATE)
        self.share *= 1 - rate
        self.share[infosets] += rate * counts / self.batch_size

    def weights(self, infosets: Any) -> torch.Tensor:
        """Weights sqrt(w(s)) in the fit of a network: `(R, 1)`, summing to 1."""
        weights = self.share[infosets] ** 0.5
        return (weights / weights.sum()).float()[:, None]

    def target_step(
        self, gradient: torch.Tensor, logits: torch.Tensor, infosets: Any, counts: torch.Tensor
    ) -> torch.Tensor:
        """The change of logits `(R, A)` that follows from the gradient of PPO's loss `(R, A)`."""
        legal, share = self._legal[infosets], self.share[infosets]
        policy = logits.masked_fill(~legal, ILLEGAL).softmax(1)
        log_magnet = self.log_magnet[infosets]
        magnet_gradient = policy * (log_magnet - (policy * log_magnet).sum(1, keepdim=True))
        batch_share = (counts / counts.sum()).float()[:, None]
        ascent = self.kl * batch_share * magnet_gradient - gradient / self.sigma
        step = torch.where(legal, ascent / (policy + PROBABILITY_FLOOR), 0.0)
        step = step - step.sum(1, keepdim=True) / legal.sum(1, keepdim=True)
        samples = (share * self.batch_size / FULL_STEP_SAMPLES).clamp(max=1)
        scale = self.step_size * samples.sqrt() / share.clamp(min=1e-12)
        return torch.where(legal, step * scale[:, None].float(), 0.0)


# --- Games without a tree -------------------------------------------------------------------------


class NetworkLearner:
    """Learning without statistics per information set: equation 4."""

    def __init__(self, model: Any, game: Game, given: Given, measure: Measure | None) -> None:
        self._model, self._given = model, given
        self._measure = measure or (lambda network: float("nan"))
        self._ent_coef = model.ent_coef
        self.return_scale = uniform_return_scale(game)
        self.last = actor_of(model.policy)
        self.average = copy.deepcopy(self.last).requires_grad_(False)
        self._count, self._hooks = 0, ExitStack()

    def measures(self) -> tuple[float, float]:
        """The measure of the last and of the averaged network, NaN if there is none."""
        return self._measure(self.last), self._measure(self.average)

    def start(self, total_steps: int) -> None:
        """Install the gradient hook."""
        self._schedule = _schedule(self._given, "states", total_steps)
        if self._given["ent_coef_end"] is None and self._ent_coef != default("ent_coef", "states"):
            self._schedule["ent_coef_end"] = self._ent_coef  # constant, as the user set it
        if self._schedule["kl"]:
            network = self._model.policy.action_net
            self._hooks.callback(network.register_forward_hook(self._on_logits).remove)

    def stop(self) -> None:
        """Remove the gradient hook."""
        self._hooks.close()

    def add_to_average(self) -> None:
        """Add the current weights to the average: the t-th network has weight t(t+1)."""
        self._count += 1
        weight = 3 / (self._count + 2)  # t(t+1) / (1*2 + 2*3 + ... + t(t+1))
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.last.parameters(), strict=True):
                mean.lerp_(now, weight)

    def before_rollout(self, progress: float) -> float:
        """Set the pull; return PPO's entropy coefficient."""
        self._kl = _between(self._schedule["kl"], self._schedule["kl_end"], progress)
        return _between(self._ent_coef, self._schedule["ent_coef_end"], progress)

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates depend on."""
        return {"average": self.average.state_dict(), "count": self._count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self.average.load_state_dict(state["average"])
        self._count = state["count"]

    def _on_logits(self, module: Any, inputs: Any, logits: torch.Tensor) -> None:
        """Add the gradient of kl * mean KL(p || m): per sample p (log p/m - KL(p || m))."""
        if not _is_learning(self._model, logits):
            return
        batch = self._model.rollout_buffer.batch
        illegal = batch.action_masks == 0
        with torch.no_grad():
            log_policy = logits.masked_fill(illegal, ILLEGAL).log_softmax(1)
            magnet = self.average(batch.observations)
            log_ratio = log_policy - magnet.masked_fill(illegal, ILLEGAL).log_softmax(1)
            policy = log_policy.exp()
            divergence = (policy * log_ratio).sum(1, keepdim=True)
            pull = self._kl / len(logits) * policy * (log_ratio - divergence)
        _change_gradient(logits, lambda gradient: gradient + pull)


def uniform_return_scale(game: Game) -> float:
    """The root mean square of returns under uniform play, estimated on OpenSpiel's states."""
    simulator, rng = StateSimulator(game, 256), np.random.default_rng(0)
    squares, count = 0.0, 0
    while count < UNIFORM_HANDS:
        masks = simulator.masks
        simulator.step((masks * rng.random(masks.shape)).argmax(axis=1))
        squares += float((simulator.returns.astype(np.float64) ** 2).sum())
        count += int(simulator.ended.sum())
    return (squares / count / game.num_players) ** 0.5 or 1.0


# --- Policies that look up the outputs of a network or a table per information set ----------------


class InfosetPolicy(MaskableActorCriticPolicy):
    """SB3's policy for observations that are numbers of information sets.

    Hands on a tree visit the same information sets many times. Networks therefore run once per
    information set, and their outputs are looked up while hands are played. Losses and gradients
    are SB3's own, unless a learner changes them in `on_evaluation`. With `table` there is a weight
    per information set and action instead of a network.

    `on_evaluation` is called before logits `(R, A)` and values `(R, 1)` are differentiated, with
    both, their information sets, and the counts of these in the batch.
    """

    on_evaluation: Callable[[torch.Tensor, torch.Tensor, Any, torch.Tensor], None] | None = None

    def __init__(
        self, space: Any, *args: Any, game: Game, table: bool = False, **kwargs: Any
    ) -> None:
        self.tabular, self._legal = table, torch.tensor(game.tree.legal)
        self._inputs = torch.empty(0) if table else torch.tensor(game.network_inputs())
        self._lookup: tuple[Float64Array, torch.Tensor, torch.Tensor] | None = None
        super().__init__(observation_space(game, numbered=table), *args, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        if self.tabular:
            (rows, columns), zeros = self._legal.shape, torch.zeros(self._legal.shape)
            self.action_net = nn.Embedding(rows, columns, _weight=zeros)
            self.value_net = nn.Embedding(rows, 1, _weight=torch.zeros(rows, 1))
            self.optimizer = self.optimizer_class(
                self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
            )

    def set_training_mode(self, mode: bool) -> None:
        """Discard the stored outputs; SB3 calls this before it plays or learns."""
        self._lookup = None
        super().set_training_mode(mode)

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values and log-probabilities for a batch of information sets `(N, 1)`."""
        infosets, (sums, logs, values) = obs[:, 0].long(), self._look_up()
        draws = torch.rand(len(infosets), dtype=torch.float64)
        actions = torch.from_numpy(_draw_actions(sums, infosets.numpy(), draws.numpy()))
        chosen = logs.take(infosets * logs.shape[1] + actions)
        return actions, values.take(infosets)[:, None], chosen

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:
        """The values of information sets `(N, 1)`: `(N, 1)`."""
        return self._look_up()[2].take(obs[:, 0].long())[:, None]

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Values, log-probabilities and entropies for a batch of information sets `(N, 1)`."""
        infosets, which, counts = self._distinct(obs[:, 0].long())
        logits, values = self._run(infosets)
        if self.on_evaluation is not None:
            self.on_evaluation(logits, values, infosets, counts)
        logs = logits.masked_fill(~self._legal[infosets], ILLEGAL).log_softmax(1)
        entropy = -(logs.exp() * logs).sum(1)
        chosen = logs.flatten().index_select(0, which * logs.shape[1] + actions)
        return values.index_select(0, which), chosen, entropy.index_select(0, which)

    def outputs(self) -> tuple[Float64Array, torch.Tensor]:
        """The current policy, float64 `(I, A)`, and its values `(I, 1)`."""
        with torch.no_grad():
            logits, values = self._run(slice(None))
        return masked_softmax(logits.double().numpy(), self._legal.numpy()), values

    def set_table(self, table: Float64Array) -> None:
        """Set the weights of a tabular policy to play `table` `(I, A)`."""
        with torch.no_grad():
            logs = np.log(np.maximum(table, 1e-9))
            logs = np.where(self._legal, logs - logs.mean(1, keepdims=True, where=self._legal), 0)
            self.action_net.weight.copy_(torch.as_tensor(logs))

    def _run(self, infosets: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `(R, A)` and values `(R, 1)` of information sets."""
        if self.tabular:
            return _rows(self.action_net.weight, infosets), _rows(self.value_net.weight, infosets)
        latent_pi, latent_vf = self.mlp_extractor(self.extract_features(self._inputs[infosets]))
        return self.action_net(latent_pi), self.value_net(latent_vf)

    def _distinct(self, infosets: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """The distinct information sets, the index of each sample among them, and their counts.

        If a batch could contain all information sets of the game, all are used: the fit of a
        network then also preserves its outputs where there are no samples.
        """
        if len(self._legal) <= len(infosets):
            return slice(None), infosets, torch.bincount(infosets, minlength=len(self._legal))
        met, which, counts = torch.unique(infosets, return_inverse=True, return_counts=True)
        return met, which, counts

    def _look_up(self) -> tuple[Float64Array, torch.Tensor, torch.Tensor]:
        """Running sums of probabilities `(I, A)`, their logarithms `(I, A)`, and values `(I,)`."""
        if self._lookup is None:
            table, values = self.outputs()
            logs = np.log(np.where(self._legal, np.maximum(table, 1e-38), 1.0))
            self._lookup = running_sums(table), torch.tensor(logs).float(), values[:, 0]
        return self._lookup


def _rows(weight: torch.Tensor, infosets: Any) -> torch.Tensor:
    if isinstance(infosets, slice):
        return weight * 1.0  # not the parameter itself, whose gradient would add up
    return weight.index_select(0, infosets)


@compiled
def _draw_actions(sums: Float64Array, infosets: Int64Array, draws: Float64Array) -> Int64Array:
    """The action that each draw selects at its information set."""
    actions = np.zeros(len(infosets), np.int64)
    for i in range(len(infosets)):
        while sums[infosets[i], actions[i]] <= draws[i]:
            actions[i] += 1
    return actions
