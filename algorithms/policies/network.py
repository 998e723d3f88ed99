"""Policy networks: their shapes, their games, and their policies, evaluated in batches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.native import NativeGame
from algorithms.games import Game, as_game
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
    game: str | None = None  # the name in the file, if there is one
    module: Any = None  # the torch module, float32 `(n, input_size)` -> logits, if there is one

    def probabilities(self, inputs: Float32Array, legal: BoolArray) -> Float64Array:
        """The probability of each action, 0 for illegal ones: float64 `(n, num_actions)`.

        Args:
            inputs: float32 `(n, input_size)`.
            legal: bool `(n, num_actions)`.
        """
        normalise = masked_softmax if self.output == "logits" else masked
        table = np.empty(legal.shape)
        for start in range(0, len(table), BATCH):
            part = slice(start, start + BATCH)
            found = np.asarray(self.evaluate(inputs[part].copy(), legal[part]), np.float64)
            if found.shape != legal[part].shape:
                raise PolicyError(
                    f"the network's output for {len(legal[part])} observations has shape "
                    f"{found.shape}; want {legal[part].shape}"
                )
            table[part] = normalise(found, legal[part])
        if not np.isfinite(table).all():
            zero = "" if self.output == "logits" else ", or 0 for all legal actions"
            raise PolicyError(f"the model's output is not finite{zero}")
        return table

    def greedy(self) -> Network:
        """The network that always plays this one's most probable action."""

        def evaluate(inputs: Float32Array, legal: BoolArray) -> npt.ArrayLike:
            best = self.probabilities(inputs, legal).argmax(axis=1)
            return np.asarray(np.eye(self.num_actions)[best])

        return Network(evaluate, self.input_size, self.num_actions, "probabilities", self.game)


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


def network_table(
    network: Network | Callable[[Any], Any], game: Game | str, *, output: Output = "logits"
) -> Any:
    """The policy of a network at each information set: float64 `(I, A)`.

    In a native large game one float32 `(I_p, A)` per player.

    Args:
        network: a `Network`, or a torch module or another function from float32 `(n, size)` to
            `output` `(n, A)`, where `size` is that of the observation with or without the seat.
        game: a game with a tree or a native form.
        output: whether a function returns `logits` or `probabilities`.
    """
    loaded = as_game(game)
    if not isinstance(network, Network):
        network = as_network(network, loaded, output=output)
    require_fits(network, loaded)
    if loaded.native:
        return tuple(_native_tables(network, loaded.native))
    return network.probabilities(loaded.network_inputs(network.input_size), loaded.tree.legal)


def _native_tables(network: Network, game: NativeGame) -> Iterator[Float32Array]:
    """A network's policy at each information set of each player: float32 `(I_p, A)`."""
    with_seat = network.input_size > game.observation_size
    for player, count in enumerate(game.num_infosets):
        table = np.empty((count, game.num_actions), np.float32)
        seat = np.eye(game.num_players, dtype=np.float32)[player]
        for start in range(0, count, NATIVE_BATCH):
            stop = min(start + NATIVE_BATCH, count)
            inputs = game.observations(player, start, stop)
            if with_seat:
                inputs = np.hstack([inputs, np.tile(seat, (stop - start, 1))])
            legal = game.legal(player, start, stop)
            table[start:stop] = network.probabilities(inputs, legal)
        yield table


def as_network(function: Callable[[Any], Any], game: Game, *, output: Output = "logits") -> Network:
    """The `Network` of a torch module or another function.

    Its input size is the first of the game's two sizes with which it can be called.
    """
    if output not in ("logits", "probabilities"):
        raise PolicyError(f"output {output!r}: want 'logits' or 'probabilities'")
    evaluate = evaluation(function)
    sizes = [game.observation_size, game.observation_size + game.num_players]
    for size in reversed(sizes) if game.appends_seat else sizes:
        try:
            evaluate(np.zeros((1, size), np.float32), np.ones((1, game.num_actions), np.bool_))
        except Exception as error:  # a function may fail in any way
            reason = error
            continue
        module = function if _is_module(function) else None
        return Network(evaluate, size, game.num_actions, output, module=module)
    raise PolicyError(
        f"the network cannot be called with {sizes[0]} inputs, {game.name}'s observation, nor "
        f"with {sizes[1]}, which includes a one-hot of the seat ({first_line(reason)})"
    ) from reason


def evaluation(function: Callable[[Any], Any]) -> Callable[[Float32Array, BoolArray], Any]:
    """`Network.evaluate` for a torch module or another function of the inputs alone."""
    torch = sys.modules.get("torch")  # nothing needs it before it is imported

    def evaluate(inputs: Float32Array, legal: BoolArray) -> npt.ArrayLike:
        if torch is None:
            return np.asarray(function(inputs))
        with torch.no_grad():
            found = function(torch.from_numpy(inputs) if _is_module(function) else inputs)
        is_tensor = isinstance(found, torch.Tensor)
        return np.asarray(found.double().cpu().numpy() if is_tensor else found)

    return evaluate


def _is_module(function: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(function, torch.nn.Module)


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
