"""The report on a policy that `nashconv` prints: its measure, its losses, and more for Kuhn."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from algorithms.dominance import Exposure, eliminate, exposures
from algorithms.games import KUHN, Game
from algorithms.kuhn_equilibria import VALUE, Nearest, nearest_nash
from algorithms.nashconv import Loss, Measure
from algorithms.policies.json_files import to_names, to_players
from algorithms.policies.openspiel_policies import OpenSpielMeasure, measured_by_openspiel
from algorithms.policies.policy import Policy
from algorithms.support.command import shortened, table
from kuhn_bridge.rules import Action

ROUNDING = 1e-9  # chips per hand: a smaller NashConv is 0 up to rounding
OPENSPIEL_TOLERANCE = 1e-10  # between our numbers and OpenSpiel's, per chip at stake
MIN_PROBABILITY = 5e-5  # that four decimals show
MAX_LABEL = 120  # characters of an information set's label; JSON has all of it


@dataclass(frozen=True, slots=True)
class Report:
    """One policy and its measure."""

    source: str  # name or file of the policy
    policy: Policy
    measure: Measure
    uniform: float  # NashConv of uniform play in this game
    theirs: OpenSpielMeasure | None = None  # if requested
    nearest: Nearest | None = None  # in Kuhn, the nearest equilibrium
    exposures: tuple[Exposure, ...] = ()  # in Kuhn, the dominated actions that the policy plays

    @property
    def agrees(self) -> bool:
        """Whether OpenSpiel's numbers, if there are any, are ours up to rounding."""
        if self.theirs is None:
            return True
        stakes = max(1.0, float(np.abs(self.policy.game.tree.returns).max()))
        return self.theirs.gap(self.measure) <= OPENSPIEL_TOLERANCE * stakes


def report(source: str, policy: Policy, *, openspiel: bool = False) -> Report:
    """The report on a policy; with `openspiel`, OpenSpiel's measure too."""
    game = policy.game
    theirs = measured_by_openspiel(game, policy.table) if openspiel else None
    found = Report(source, policy, policy.measure(), uniform_nash_conv(game), theirs)
    if game.name != KUHN:
        return found
    dominated = exposures(game.tree, policy.table, eliminate(game.tree))
    return replace(found, nearest=nearest_nash(policy.table), exposures=dominated)


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


def to_json(item: Report) -> dict[str, Any]:
    """The JSON object of a report."""
    measure, game, theirs = item.measure, item.policy.game, item.theirs
    label = game.infoset_label if game.native else lambda infoset, _: game.tree.keys[infoset]
    found: dict[str, Any] = {
        "source": item.source,
        "game": game.name,
        **{x: getattr(measure, x) for x in ("nash_conv", "exploitability", "gains", "values")},
        "best_response_values": measure.best_values,
        "uniform_nash_conv": item.uniform,
        "verdict": verdict(measure.nash_conv, item.uniform),
        "losses": [
            {"player": loss.player, "key": label(loss.infoset, loss.player)}
            | dict(zip(Loss._fields[2:], loss[2:], strict=True))
            for loss in measure.losses
        ],
    }
    if game.fits_tree:
        tree = game.tree
        responses: list[dict[str, int]] = [{} for _ in game.agents]
        for owner, key, action in zip(tree.owner, tree.keys, measure.best_responses, strict=True):
            responses[owner][key] = int(action)
        found["players"] = to_players(tree, item.policy.table)
        found["best_response_players"] = responses
    if theirs:
        found["openspiel"] = asdict(theirs) | {"gap": theirs.gap(measure)}
    if item.nearest:
        keys, best = game.tree.keys, measure.best_responses
        played = [(keys[e.infoset], Action(e.action).name, e.probability) for e in item.exposures]
        found |= {
            "value": measure.values[0],
            "policy": to_names(item.policy.table),
            "best_response": {k: Action(a).name for k, a in zip(keys, best, strict=True)},
            "distance": item.nearest.distance,
            "alpha": item.nearest.alpha,
            "dominated": [{"key": k, "action": a, "probability": p} for k, a, p in played],
        }
    return found


def overview(reports: Sequence[Report]) -> str:
    """Several reports on policies of one game as a table, one row per policy."""
    first, agents = reports[0], reports[0].policy.game.agents
    own = ["value", "distance", "dominated"] if first.nearest else [f"value {a}" for a in agents]
    header = ["policy", "NashConv", *(f"gain {agent}" for agent in agents), *own]
    rows = []
    for item in reports:
        measure, near = item.measure, item.nearest
        row = [item.source, *(f"{x:.6f}" for x in (measure.nash_conv, *measure.gains))]
        row += [f"{value:+.6f}" for value in (measure.values[:1] if near else measure.values)]
        if near:
            dominated = max((exposure.probability for exposure in item.exposures), default=0.0)
            row += [f"{near.distance:.4f}", f"{dominated:.4f}"]
        rows.append([*row, *([f"{item.theirs.nash_conv:z.6f}"] if item.theirs else [])])
    header += ["OpenSpiel"] if first.theirs else []
    return f"{table(header, rows)}\nuniform play has NashConv {first.uniform:.6f}, an equilibrium 0"


def to_text(item: Report, *, max_losses: int) -> str:
    """A report in detail, with the `max_losses` largest losses."""
    return "\n".join(_lines(item, max_losses))


def _lines(item: Report, max_losses: int) -> Iterator[str]:
    measure, theirs, game, near = item.measure, item.theirs, item.policy.game, item.nearest
    words = verdict(measure.nash_conv, item.uniform)
    yield f"{item.source}: NashConv {measure.nash_conv:.6g}, {words}"
    yield f"\n{_kuhn_table(item, near)}\n" if near else f"{game.size_label}\n"
    numbers = {"value": measure.values, "value of a best response": measure.best_values}
    numbers["gain"] = measure.gains
    if theirs:
        numbers["gain, by OpenSpiel"] = theirs.gains
    rows = [(name, *(f"{x:+z.9f}" for x in row)) for name, row in numbers.items()]
    yield f"{table(('chips per hand', *game.agents), rows)}\n"
    if near:
        yield f"value against {VALUE}  {measure.values[0] - float(VALUE):+.6f}"
        equilibrium = f"the equilibrium of alpha {near.alpha:.4f}"
        yield f"distance             {near.distance:.6f} to {equilibrium}"
        shown = [one for one in item.exposures if one.probability > MIN_PROBABILITY]
        if not shown:
            yield "dominated actions    none played"
        for one in shown:
            where = game.infoset_label(one.infoset)
            action = game.action_label(one.infoset, one.action)
            yield f"dominated            {one.probability:.4f} on {where}: {action}"
    players = game.num_players
    yield f"exploitability       {measure.exploitability:.6g} (NashConv / {players} players)"
    if theirs:
        word = "agrees" if item.agrees else "DISAGREES"
        values = ", ".join(f"{value:+.6f}" for value in theirs.values)
        yield f"OpenSpiel            NashConv {theirs.nash_conv:.6g}, value {values}"
        yield f"                     {word}: the largest difference is {theirs.gap(measure):.1e}"
    if measure.losses and max_losses:
        yield from _losses(game, measure, max_losses)


def _losses(game: Game, measure: Measure, count: int) -> Iterator[str]:
    """The information sets where the policy loses most, and the best actions there."""
    total = measure.nash_conv
    rows = [
        (
            shortened(game.infoset_label(loss.infoset, loss.player), MAX_LABEL),
            f"{loss.reach:.4f}",
            f"{game.action_label(loss.infoset, loss.played, loss.player)} {loss.probability:.2f}",
            game.action_label(loss.infoset, loss.best, loss.player),
            f"{loss.lost:.6f}",
            f"{loss.lost / total:.0%}" if total else "-",
        )
        for loss in measure.losses[:count]
    ]
    header = ("where chips are lost", "reached", "plays", "best", "chips per hand", "share")
    yield f"\n{table(header, rows)}"
    if (left := len(measure.losses) - count) > 0:
        rest = total - sum(loss.lost for loss in measure.losses[:count])
        more = f"{left:,} more" if game.fits_tree else "others"
        yield f"... and {more} that lose {rest:.6f} together"


def _kuhn_table(item: Report, near: Nearest) -> str:
    """Probabilities of the policy and of the nearest equilibrium, and the best response."""
    names, tree = ("check/call", "bet", "fold"), item.policy.game.tree
    header = ("state", *names, *(f"~{name}" for name in names), "best response")
    both = np.where(tree.legal, [item.policy.table, near.table], np.nan)
    best = item.measure.best_responses.tolist()
    rows = [
        (
            key,
            *("-" if np.isnan(p) else f"{p:.4f}" for p in both[:, infoset].flat),
            item.policy.game.action_label(infoset, best[infoset]),
        )
        for infoset, key in enumerate(tree.keys)
    ]
    return f"{table(header, rows)}\n(~ is the nearest equilibrium)"
