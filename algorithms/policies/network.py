"""Policy networks: their shapes, and their policies, evaluated in batches."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.games import Game
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array
from algorithms.support.errors import first_line
from kuhn_bridge.errors import PolicyError

BATCH = 4_096  # rows evaluated at a time
NATIVE_BATCH = 2**16  # information sets whose observations are made at a time

Output: TypeAlias = Literal["logits", "probabilities"]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network that plays, and the shapes of its input and output.

    `evaluate` maps inputs, float32 `(n, input_size)`, and legal actions, bool `(n, num_actions)`,
    to `output`, `(n, num_actions)`; it may ignore which actions are legal.
    """

    evaluate: Callable[[Float32Array, BoolArray], npt.ArrayLike]
    input_size: int
    num_actions: int
    output: Output = "logits"
    module: Any = None  # the torch module, float32 `(n, input_size)` -> logits, if there is one

    def probabilities(self, inputs: Float32Array, legal: BoolArray) -> Float64Array:
        """The probability of each action, 0 for illegal ones: float64 `(n, num_actions)`."""
        normalise = masked_softmax if self.output == "logits" else masked
        table = np.empty(legal.shape)
        for start in range(0, len(table), BATCH):
            part = slice(start, start + BATCH)
            found = np.asarray(self.evaluate(inputs[part].copy(), legal[part]), np.float64)
            if found.shape != (want := legal[part].shape):
                raise PolicyError(f"the network's output has shape {found.shape}; want {want}")
            table[part] = normalise(found, legal[part])
        if not np.isfinite(table).all():
            zero = ", or 0 for all legal actions" * (self.output == "probabilities")
            raise PolicyError(f"the model's output is not finite{zero}")
        return table

    def greedy(self) -> Network:
        """The network that always plays this one's most probable action."""

        def evaluate(inputs: Float32Array, legal: BoolArray) -> npt.ArrayLike:
            best = self.probabilities(inputs, legal).argmax(axis=1)
            return np.asarray(np.eye(self.num_actions)[best])

        return Network(evaluate, self.input_size, self.num_actions, "probabilities")


def uniform_network(game: Game) -> Network:
    """The network that plays every legal action equally often."""
    sizes = game.observation_size, game.num_actions
    return Network(lambda inputs, legal: legal, *sizes, output="probabilities")


def require_fits(network: Network, game: Game) -> None:
    """Raise an error if the network's input or output has another size than the game's."""
    sizes = game.observation_size, game.observation_size + game.num_players
    if network.input_size not in sizes or network.num_actions != game.num_actions:
        raise PolicyError(
            f"a model for another game: {network.input_size} inputs and {network.num_actions} "
            f"actions; {game.name} has {sizes[0]} inputs, or {sizes[1]} with a one-hot of the "
            f"seat, and {game.num_actions} actions"
        )


def network_table(network: Network | Callable[[Any], Any], game: Game) -> Any:
    """The policy of a network, or of a function of logits, at each information set.

    float64 `(I, A)` in a game with a tree, one float32 `(I_p, A)` per player in a native large one.
    """
    if not isinstance(network, Network):
        network = as_network(network, game)
    if (native := game.native) is None:
        return network.probabilities(game.network_inputs(network.input_size), game.tree.legal)
    tables = []
    for player, count in enumerate(native.num_infosets):
        tables.append(table := np.empty((count, game.num_actions), np.float32))
        seat = np.eye(game.num_players, dtype=np.float32)[[player]]
        for start in range(0, count, NATIVE_BATCH):
            part = start, min(start + NATIVE_BATCH, count)
            tensors = native.observations(player, *part)
            inputs = np.hstack([tensors, seat.repeat(len(tensors), axis=0)])
            legal = native.legal(player, *part)
            table[slice(*part)] = network.probabilities(inputs[:, : network.input_size], legal)
    return tuple(tables)


def as_network(function: Callable[[Any], Any], game: Game, *, output: Output = "logits") -> Network:
    """The `Network` of a torch module or another function, float32 `(n, size)` -> `(n, A)`.

    Its input size is the first of the game's two, without and with the seat, that it accepts.
    """
    if output not in ("logits", "probabilities"):
        raise PolicyError(f"output {output!r}: want 'logits' or 'probabilities'")
    sizes = [game.observation_size, game.observation_size + game.num_players]
    for size in reversed(sizes) if game.appends_seat else sizes:
        network = function_network(function, size, game.num_actions, output)
        try:
            network.evaluate(np.zeros((1, size), np.float32), np.ones((1, 1), np.bool_))
            return network
        except Exception as error:  # a function may fail in any way
            reason = error
    raise PolicyError(
        f"the network cannot be called with {sizes[0]} inputs, {game.name}'s observation, nor "
        f"with {sizes[1]}, which includes a one-hot of the seat ({first_line(reason)})"
    ) from reason


def function_network(
    function: Callable[[Any], Any], size: int, num_actions: int, output: Output = "logits"
) -> Network:
    """The `Network` of a torch module or another function of the inputs alone."""
    torch = sys.modules.get("torch")  # nothing needs it before it is imported
    module = function if torch and isinstance(function, torch.nn.Module) else None

    def evaluate(inputs: Float32Array, legal: BoolArray) -> npt.ArrayLike:
        if torch is None:
            return np.asarray(function(inputs))
        with torch.no_grad():
            found = function(torch.from_numpy(inputs) if module is not None else inputs)
        return np.asarray(found.double().cpu() if isinstance(found, torch.Tensor) else found)

    return Network(evaluate, size, num_actions, output, module)


def masked(weights: Float64Array, legal: BoolArray) -> Float64Array:
    """Weights `(N, A)` of the legal actions, divided by their sum; NaN if that is 0."""
    allowed = np.where(legal, weights, 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(allowed / allowed.sum(axis=1, keepdims=True))


def masked_softmax(logits: Float64Array, legal: BoolArray) -> Float64Array:
    """The softmax of logits `(N, A)` over the legal actions; NaN where they are not finite."""
    allowed = np.where(legal, logits, -np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        return masked(np.exp(allowed - allowed.max(axis=1, keepdims=True)), legal)
