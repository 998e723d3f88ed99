"""Any policy as a network of a chosen width: fitted, measured, and saved as a model.

    policy --fit (distillation.py)--> actor      what the network plays
                                      critic     what it expects to win, for training that goes on

The critic shares nothing with the actor but its start: its hidden layers are a copy of the actor's,
and its last layer is the least-squares solution for the values of the information sets under the
policy, each weighted by how often hands arrive there. In large games these values are not known,
and the critic says 0, which is harmless: in PPO it only reduces the noise of the feedback.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import nn

from algorithms.games import Game
from algorithms.nashconv import InfosetValues, Loss, Measure
from algorithms.policies.distillation import (
    Dataset,
    Fit,
    default_steps,
    fit,
    make_dataset,
    unscaled,
)
from algorithms.policies.network import MAX_WIDTH, WIDTH, as_network
from algorithms.policies.policy import Policy
from algorithms.support.progress import Advance
from kuhn_bridge.errors import BridgeError, PolicyError, short_repr

if TYPE_CHECKING:
    from sb3_contrib import MaskablePPO

POINTS = 25  # how often NashConv is measured, at most
MAX_STEPS = 10**9
MAX_SEED = 2**64 - 1  # of torch
RIDGE = 1e-6  # of the least-squares solution, relative to the mean square of the features


@dataclass(frozen=True, eq=False)
class DistilledPolicy:
    """A network that was fitted to a policy, and what the fit cost.

    Attributes:
        policy: what the network plays.
        width: units of each of its two hidden layers.
        actor: the network, float32 `(n, size)` -> logits `(n, A)`.
        critic: float32 `(n, size)` -> `(n, 1)`, the expected return of the player who acts.
        before: measure of the policy that was fitted.
        nash_conv_after: NashConv of the network.
        curve: numbers of steps, and NashConv after them.
        steps: number of optimizer's steps.
        interrupted: whether Ctrl-C ended the fit.
    """

    policy: Policy
    width: int
    actor: nn.Sequential
    critic: nn.Sequential
    before: Measure
    nash_conv_after: float
    curve: tuple[tuple[int, float], ...]
    steps: int
    interrupted: bool

    @property
    def game(self) -> Game:
        """The game of the policy."""
        return self.policy.game

    @property
    def nash_conv_before(self) -> float:
        """NashConv of the policy that was fitted."""
        return self.before.nash_conv

    @cached_property
    def nash_conv_uniform(self) -> float:
        """NashConv of uniform play."""
        return Policy.uniform(self.game).nash_conv()

    @property
    def lost(self) -> float:
        """How much larger the network's NashConv is; negative where it is better than a noisy one.

        The network with the smallest NashConv is kept, so a fit may smooth noise away.
        """
        return self.nash_conv_after - self.nash_conv_before

    @property
    def share_lost(self) -> float | None:
        """What is lost, as a share of uniform play's NashConv; None where that is 0."""
        if self.nash_conv_uniform == 0:
            return None
        return self.lost / self.nash_conv_uniform

    @property
    def num_weights(self) -> int:
        """The number of the actor's weights."""
        return sum(weight.numel() for weight in self.actor.parameters())

    def losses(self) -> tuple[Loss, ...]:
        """The network's losses minus the policy's at the same information sets, largest first."""
        known = {(loss.player, loss.infoset): loss.lost for loss in self.before.losses}
        added = [
            loss._replace(lost=loss.lost - known.get((loss.player, loss.infoset), 0.0))
            for loss in self.policy.measure().losses
        ]
        return tuple(sorted(added, key=lambda loss: -loss.lost))

    def to_sb3(self) -> MaskablePPO:
        """A stock `MaskablePPO` with an `MlpPolicy` that plays like the network."""
        from algorithms.policies.model_zip_writer import layers_of, make_model

        actor = layers_of(self.actor)
        assert actor is not None  # noqa: S101  # `make_network` makes plain layers
        return make_model(self.game, actor=actor, critic=layers_of(self.critic))

    def save(self, path: str | Path) -> None:
        """Write a `.zip`, which `MaskablePPO.load` opens anywhere, or an `.onnx` file."""
        suffix = Path(path).suffix
        if suffix == ".zip":
            from algorithms.policies.model_zip_writer import write_model

            write_model(self.to_sb3(), path)
        elif suffix == ".onnx":
            from algorithms.policies.onnx_writer import export

            export(self.actor, self.game, path)
        else:
            raise PolicyError(f"{path}: a network is written as .zip or .onnx")

    def __repr__(self) -> str:
        return (
            f"<{self.game.name} in a network of 2 x {self.width}: NashConv "
            f"{self.nash_conv_before:.2e} before, {self.nash_conv_after:.2e} after>"
        )


def distil(  # noqa: PLR0913  # options by name
    policy: Policy,
    *,
    width: int = WIDTH,
    steps: int | None = None,
    seed: int = 0,
    points: int | None = None,
    progress: Advance | None = None,
) -> DistilledPolicy:
    """Fit a network with two hidden layers to a policy; Ctrl-C keeps the best network so far.

    Args:
        policy: policy of a game that is measured exactly and has tensors.
        width: units of each hidden layer.
        steps: number of optimizer's steps; by default it follows from the number of information
            sets.
        seed: random seed of the first weights and of the draws.
        points: number of times that NashConv is measured along the way.
        progress: function that is called with the number of steps so far and a note.
    """
    _require_whole("width", width, 1, MAX_WIDTH)
    _require_whole("seed", seed, 0, MAX_SEED)
    if steps is not None:
        _require_whole("steps", steps, 1, MAX_STEPS)
    game = policy.game
    game.require_exact()
    if steps is None:
        steps = steps_for(game)
    before = policy.measure()
    fitted = fit_network(
        game,
        make_dataset(game, policy.table),
        width=width,
        steps=steps,
        seed=seed,
        points=default_points(game) if points is None else points,
        progress=progress,
    )
    assert fitted.nash_conv is not None  # noqa: S101  # it was measured at the end
    values = game.infoset_values(policy.table)
    return DistilledPolicy(
        policy=fitted.policy,
        width=width,
        actor=fitted.actor,
        critic=_critic_of(fitted.actor, width, game, values),
        before=before,
        nash_conv_after=fitted.nash_conv,
        curve=fitted.fit.curve,
        steps=fitted.fit.steps,
        interrupted=fitted.fit.interrupted,
    )


class FittedNetwork(NamedTuple):
    """A network that was fitted to a policy; NashConv is None if it was not measured."""

    actor: nn.Sequential
    policy: Policy  # what it plays
    nash_conv: float | None
    fit: Fit


def fit_network(  # noqa: PLR0913  # options by name
    game: Game,
    dataset: Dataset,
    *,
    width: int,
    seed: int,
    points: int,
    steps: int | None = None,
    progress: Advance | None = None,
) -> FittedNetwork:
    """A new network with two hidden layers that is fitted to a policy of a game.

    It is measured `points` times along the way and the best one is kept, or the last one if
    `points` is 0.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        num_inputs = len(dataset.input_scales)
        scaled_network = make_network(num_inputs, [width, width], game.num_actions)

    # The network as it was last measured, with the table that it has of it: in a large game
    # evaluating all information sets takes ten seconds.
    measured: _Measured | None = None

    def nash_conv_now() -> float:
        nonlocal measured
        measured = None  # one table at a time: some take GiB
        actor = unscaled(scaled_network, dataset.input_scales)
        policy = _policy_of(actor, game)
        measured = _Measured(actor, policy, policy.nash_conv())
        return measured.nash_conv

    fitted = fit(
        scaled_network,
        dataset,
        steps=steps,
        seed=seed,
        measure=nash_conv_now if points else None,
        points=points,
        progress=progress,
    )
    if not points:
        actor = unscaled(scaled_network, dataset.input_scales)
        return FittedNetwork(actor, _policy_of(actor, game), None, fitted)
    if measured is None or measured.nash_conv != fitted.best:
        nash_conv_now()  # of the best network, to which the fit returned
    assert measured is not None  # noqa: S101  # `nash_conv_now` sets it
    return FittedNetwork(*measured, fitted)


class _Measured(NamedTuple):
    """A network during a fit, what it plays, and NashConv of that."""

    actor: nn.Sequential
    policy: Policy
    nash_conv: float


def default_points(game: Game) -> int:
    """How often NashConv is measured during a fit, by default.

    As in a learning curve, less often in a large game, where a measure takes seconds to a minute.
    """
    return min(POINTS, game.curve_points // 2)


def steps_for(game: Game) -> int:
    """The default number of optimizer's steps for policies of a game."""
    return default_steps(game.size.infosets or 0)


def make_network(inputs: int, widths: Sequence[int], outputs: int) -> nn.Sequential:
    """Linear layers with a ReLU after each but the last, as SB3 arranges them in an `MlpPolicy`."""
    layers: list[nn.Module] = []
    size = inputs
    for width in widths:
        layers += [nn.Linear(size, width), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, outputs))


def _require_whole(name: str, number: int, least: int, most: int) -> None:
    """Raise an error for what is not a whole number in this range."""
    is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not is_whole or not least <= number <= most:
        raise BridgeError(
            f"{name}={short_repr(number)}: want a whole number from {least} to {most:,}"
        )


def _policy_of(actor: nn.Module, game: Game) -> Policy:
    """What a network plays now."""
    return Policy(game, network=as_network(actor, game))


def _critic_of(
    actor: nn.Sequential, width: int, game: Game, known: InfosetValues | None
) -> nn.Sequential:
    """A network of the actor's hidden layers, and a last layer that fits known values, or is 0."""
    hidden = nn.Sequential(*copy.deepcopy(list(actor.children())[:-1]))
    with torch.random.fork_rng(devices=[]):  # the layer draws weights, which are replaced
        last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    critic = nn.Sequential(*hidden.children(), last)
    if known is None:
        return critic
    arrives = np.flatnonzero(known.reach > 0)
    with torch.no_grad():
        inputs = torch.from_numpy(game.network_inputs()[arrives].copy())
        # (n, width + 1): the hidden layers' output, and 1 for the bias.
        features = torch.cat([hidden(inputs), torch.ones(len(inputs), 1)], dim=1).double()
        weights = torch.from_numpy(known.reach[arrives])[:, None]
        targets = torch.from_numpy(known.values[arrives])[:, None]
        # The normal equations of least squares, with a little weight on small coefficients.
        weighted = features * weights
        matrix = features.T @ weighted
        matrix += RIDGE * matrix.diagonal().mean() * torch.eye(len(matrix))
        solution = torch.linalg.solve(matrix, weighted.T @ targets)
        last.weight.copy_(solution[:-1].T)
        last.bias.copy_(solution[-1])
    return critic
