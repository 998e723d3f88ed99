"""The report on one policy that `nashconv` prints: its measure, its losses, and more for Kuhn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from algorithms.exact.elimination import Elimination, Exposure, eliminate, exposures
from algorithms.exact.kuhn import Nearest, nearest_nash
from algorithms.exact.values import Loss, Measure
from algorithms.games import KUHN, Game, kuhn
from algorithms.policies.json_format import to_players
from algorithms.policies.kuhn import to_names
from algorithms.policies.openspiel import OpenSpielMeasure, measured_by_openspiel
from algorithms.policies.policy import Policy
from kuhn_bridge.rules import Action

ROUNDING = 1e-9  # chips per hand: a smaller NashConv is 0 up to rounding


@dataclass(frozen=True, slots=True)
class KuhnReport:
    """What is known for Kuhn alone: the nearest equilibrium, and dominated actions."""

    nearest: Nearest
    exposures: tuple[Exposure, ...]

    @property
    def dominated(self) -> float:
        """The largest probability of a dominated action."""
        return max((exposure.probability for exposure in self.exposures), default=0.0)


@dataclass(frozen=True, slots=True)
class Report:
    """One policy and its measure.

    Attributes:
        source: the name or the file of the policy.
        uniform: NashConv of uniform play in this game.
        kuhn: for Kuhn alone.
        theirs: OpenSpiel's own measure of the policy, if it was asked for.
    """

    source: str
    policy: Policy
    measure: Measure
    losses: tuple[Loss, ...]
    uniform: float
    kuhn: KuhnReport | None = None
    theirs: OpenSpielMeasure | None = None

    @property
    def game(self) -> Game:
        """The game of the policy."""
        return self.policy.game

    @property
    def verdict(self) -> str:
        """The NashConv in words."""
        return verdict(self.measure.nash_conv, self.uniform)


def report(source: str, policy: Policy, *, openspiel: bool = False) -> Report:
    """The report on a policy; with `openspiel`, OpenSpiel's measure too."""
    measure = policy.measure()
    return Report(
        source,
        policy,
        measure,
        measure.losses,
        uniform_nash_conv(policy.game),
        _kuhn_report(policy) if policy.game.name == KUHN else None,
        measured_by_openspiel(policy.game, policy.table) if openspiel else None,
    )


def uniform_nash_conv(game: Game) -> float:
    """NashConv of uniform play, in closed form if the game has one."""
    if game.closed_form:
        return float(game.closed_form.uniform_nash_conv)
    return Policy.uniform(game).nash_conv()


def verdict(nash_conv: float, uniform: float) -> str:
    """A NashConv in words, compared with that of uniform play."""
    if nash_conv <= ROUNDING:
        return "an equilibrium, up to rounding"
    if abs(nash_conv - uniform) <= ROUNDING:
        return f"as far from equilibrium as uniform play ({uniform:.4f})"
    if nash_conv > uniform:
        return f"worse than uniform play ({uniform:.4f})"
    share = 1 - nash_conv / uniform
    return f"{share:.1%} of the way from uniform play ({uniform:.4f}) to equilibrium (0)"


def as_json(item: Report) -> dict[str, Any]:
    """The JSON object of a report."""
    measure, game, theirs = item.measure, item.game, item.theirs
    found: dict[str, Any] = {
        "source": item.source,
        "game": game.name,
        "nash_conv": measure.nash_conv,
        "exploitability": measure.exploitability,
        "gains": measure.gains,
        "values": measure.values,
        "best_response_values": measure.best_values,
        "uniform_nash_conv": item.uniform,
        "verdict": item.verdict,
        "losses": [_loss_as_json(game, loss) for loss in item.losses],
    }
    if game.fits_tree:
        found["players"] = to_players(game.tree, item.policy.table)
        found["best_response_players"] = _responses(game, measure)
    if theirs:
        found["openspiel"] = asdict(theirs) | {"gap": theirs.gap(measure)}
    if item.kuhn:
        found |= _kuhn_as_json(item, item.kuhn)
    return found


def _loss_as_json(game: Game, loss: Loss) -> dict[str, Any]:
    return {
        "player": loss.player,
        "key": _infoset_key(game, loss),
        "reach": loss.reach,
        "played": loss.played,
        "probability": loss.probability,
        "best": loss.best,
        "lost": loss.lost,
    }


def _infoset_key(game: Game, loss: Loss) -> str:
    """The information state string, or a native game's label."""
    if game.native:
        return game.infoset_label(loss.infoset, loss.player)
    return game.tree.keys[loss.infoset]


def _responses(game: Game, measure: Measure) -> list[dict[str, int]]:
    """One map per player, from information state to the ID of the best response's action."""
    players: list[dict[str, int]] = [{} for _ in range(game.num_players)]
    actions = measure.best_responses.tolist()
    for owner, key, action in zip(game.tree.owner.tolist(), game.tree.keys, actions, strict=True):
        players[owner][key] = action
    return players


def _kuhn_report(policy: Policy) -> KuhnReport:
    found = exposures(policy.game.tree, policy.table, _elimination())
    return KuhnReport(nearest_nash(policy.table), found)


@cache
def _elimination() -> Elimination:
    return eliminate(kuhn().tree)


def _kuhn_as_json(item: Report, known: KuhnReport) -> dict[str, Any]:
    """The entries for Kuhn alone."""
    responses = zip(item.game.tree.keys, item.measure.best_responses.tolist(), strict=True)
    return {
        "value": item.measure.values[0],
        "policy": to_names(item.policy.table),
        "best_response": {key: Action(action).name for key, action in responses},
        "distance": known.nearest.distance,
        "alpha": known.nearest.alpha,
        "dominated": [
            {
                "key": item.game.tree.keys[e.infoset],
                "action": Action(e.action).name,
                "probability": e.probability,
            }
            for e in known.exposures
        ],
    }
