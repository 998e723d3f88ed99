"""Policy networks: their shapes, and their policies, evaluated in batches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.games import Game
from algorithms.games.game import Table
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array
from algorithms.support.errors import first_line
from kuhn_bridge.errors import PolicyError, short_repr

if TYPE_CHECKING:
    from torch import nn

BATCH = 4_096  # rows evaluated at a time
WIDTH = 128  # units of each hidden layer of a new network
MAX_WIDTH = 4_096

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
    module: nn.Module | None = None  # float32 `(n, input_size)` -> logits, if it is one of torch's

    def probabilities(self, inputs: Float32Array, legal: BoolArray) -> Float64Array:
        """The probability of each action, 0 for illegal ones: float64 `(n, num_actions)`."""
        table = np.empty(legal.shape)
        for start in range(0, len(table), BATCH):
            batch = slice(start, start + BATCH)
            outputs = np.asarray(self.evaluate(inputs[batch].copy(), legal[batch]), np.float64)
            if outputs.shape != legal[batch].shape:
                raise PolicyError(
                    f"the network's output has shape {outputs.shape}; want {legal[batch].shape}"
                )
            if self.output == "logits":
                table[batch] = masked_softmax(outputs, legal[batch])
            else:
                _require_not_negative(outputs, legal[batch])
                table[batch] = normalised(outputs, legal[batch])
        if not np.isfinite(table).all():
            why = "" if self.output == "logits" else ", or 0 for all legal actions"
            raise PolicyError(f"the model's output is not finite{why}")
        return table

    def greedy(self) -> Network:
        """The network that always plays this one's most probable action."""

        def evaluate(inputs: Float32Array, legal: BoolArray) -> npt.ArrayLike:
            best = self.probabilities(inputs, legal).argmax(axis=1)
            return np.asarray(np.eye(self.num_actions)[best])

        return Network(evaluate, self.input_size, self.num_actions, "probabilities")


def uniform_network(game: Game) -> Network:
    """The network that plays every legal action equally often."""
    return Network(
        evaluate=lambda inputs, legal: legal,
        input_size=game.observation_size,
        num_actions=game.num_actions,
        output="probabilities",
    )


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
    """The table of a network, or of a function of logits, at each information set.

    float64 `(I, A)` in a game with a tree; in a large game one float32 `(I_p, A)` per player.
    """
    if not isinstance(network, Network):
        network = as_network(network, game)
    table: Table = game.table_of(network.probabilities, network.input_size)
    return table


def as_network(function: Callable[[Any], Any], game: Game, *, output: Output = "logits") -> Network:
    """The `Network` of a torch module or another function, float32 `(n, size)` -> `(n, A)`.

    Its input size is the first of the game's two, without and with the seat, that it accepts. It is
    tried on an observation of the game.
    """
    if output not in ("logits", "probabilities"):
        raise PolicyError(f"output {output!r}: want 'logits' or 'probabilities'")
    with_seat = game.observation_size + game.num_players
    reasons = {}
    for size in sorted([game.observation_size, with_seat], reverse=game.appends_seat):
        network = function_network(function, size, game.num_actions, output)
        example = game.example_observation(size).copy()
        try:
            network.evaluate(example, np.ones((1, game.num_actions), np.bool_))
            return network
        except PolicyError:
            raise
        except Exception as error:  # a function may fail in any way
            reasons[size] = error
    without = reasons[game.observation_size]
    raise PolicyError(
        f"the network cannot be called with {game.observation_size} inputs, {game.name}'s "
        f"observation ({first_line(without)}), nor with {with_seat}, which includes a one-hot of "
        f"the seat ({first_line(reasons[with_seat])})"
    ) from without


def function_network(
    function: Callable[[Any], Any], size: int, num_actions: int, output: Output = "logits"
) -> Network:
    """The `Network` of a torch module or another function of the inputs alone."""
    torch = sys.modules.get("torch")  # nothing needs it before it is imported
    if torch is None:
        return Network(lambda inputs, legal: to_array(function(inputs)), size, num_actions, output)
    module = function if isinstance(function, torch.nn.Module) else None

    def evaluate(inputs: Float32Array, legal: BoolArray) -> npt.ArrayLike:
        with torch.no_grad():
            if module is None:
                return to_array(function(inputs))
            with evaluating(module):
                return to_array(module(torch.from_numpy(inputs).to(_device_of(module))))

    return Network(evaluate, size, num_actions, output, module)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Switch dropout and the like off; afterwards the module is as it was."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _device_of(module: nn.Module) -> Any:
    """The device of a module's weights; the CPU if it has none."""
    weights = next(module.parameters(), None)
    return "cpu" if weights is None else weights.device


def to_array(output: Any) -> npt.NDArray[Any]:
    """What a function returned, as an array; a tensor may be on any device."""
    if isinstance(output, tuple):
        raise PolicyError(
            f"the network returns {len(output)} things, and one is wanted: logits or probabilities "
            "(n, A); for a model of SB3 use Policy.from_sb3(model)"
        )
    if hasattr(output, "detach"):
        return np.asarray(output.detach().cpu().double())
    try:
        return np.asarray(output, np.float64)
    except (TypeError, ValueError):
        raise PolicyError(
            f"the network returns {short_repr(output)}, and an array (n, A) of logits or "
            "probabilities is wanted"
        ) from None


def _require_not_negative(found: Float64Array, legal: BoolArray) -> None:
    """Raise an error for a legal action with a negative probability."""
    negative = found[legal & (found < 0)]
    if negative.size:
        raise PolicyError(
            f"the network's output has {negative[0]:g}, and probabilities are not negative; "
            "logarithms of probabilities are output='logits'"
        )


def normalised(weights: Float64Array, legal: BoolArray) -> Float64Array:
    """Weights `(n, A)` of the legal actions, divided by their sum; NaN if that is 0."""
    allowed = np.where(legal, weights, 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(allowed / allowed.sum(axis=1, keepdims=True))


def masked_softmax(logits: Float64Array, legal: BoolArray) -> Float64Array:
    """The softmax of logits `(n, A)` over the legal actions; NaN where they are not finite."""
    allowed = np.where(legal, logits, -np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        return normalised(np.exp(allowed - allowed.max(axis=1, keepdims=True)), legal)
