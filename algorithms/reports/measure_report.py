"""The report on a policy that `nashconv` prints: its measure, its losses, and more for Kuhn."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from algorithms.dominance import Exposure, eliminate, exposures
from algorithms.games import ExactGame, Game, TreeGame
from algorithms.games.kuhn_policies import to_names
from algorithms.kuhn_equilibria import VALUE, Nearest
from algorithms.nashconv import Loss, Measure
from algorithms.policies.json_files import to_players
from algorithms.policies.openspiel_policies import OpenSpielMeasure, measured_by_openspiel
from algorithms.policies.policy import Policy
from algorithms.support.command import shortened, table
from kuhn_bridge.rules import Action

ROUNDING = 1e-9  # chips per hand: a smaller NashConv is 0 up to rounding
OPENSPIEL_TOLERANCE = 1e-10  # between our numbers and OpenSpiel's, per chip at stake
MIN_PROBABILITY = 5e-5  # that four decimals show
MAX_LABEL = 120  # characters of an information set's label; JSON has all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureReport:
    """One policy and its measure."""

    source: str  # name or file of the policy
    policy: Policy
    measure: Measure
    uniform_nash_conv: float  # of uniform play in this game
    by_openspiel: OpenSpielMeasure | None = None  # if requested
    nearest: Nearest | None = None  # in Kuhn, the nearest equilibrium
    exposures: tuple[Exposure, ...] = ()  # in Kuhn, the dominated actions that the policy plays

    @property
    def game(self) -> ExactGame:
        """The game of the policy."""
        return self.policy.game.require_exact()

    @property
    def agrees(self) -> bool:
        """Whether OpenSpiel's numbers, if there are any, are ours up to rounding."""
        if self.by_openspiel is None:
            return True
        stakes = max(1.0, float(np.abs(self.game.tree.returns).max()))
        return self.by_openspiel.gap(self.measure) <= OPENSPIEL_TOLERANCE * stakes


def report(source: str, policy: Policy, *, openspiel: bool = False) -> MeasureReport:
    """The report on a policy; with `openspiel`, OpenSpiel's measure too."""
    game = policy.game.require_exact()
    by_openspiel = None
    if openspiel:
        by_openspiel = measured_by_openspiel(game, policy.table)
    of_any_game = MeasureReport(
        source=source,
        policy=policy,
        measure=policy.measure(),
        uniform_nash_conv=uniform_nash_conv(game),
        by_openspiel=by_openspiel,
    )
    nearest = game.nearest_equilibrium(policy.table)
    if nearest is None:
        return of_any_game
    return replace(
        of_any_game,
        nearest=nearest,
        exposures=exposures(game.tree, policy.table, eliminate(game.tree)),
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


# ---------------------------------------------------------------------------------------------
# JSON
# ---------------------------------------------------------------------------------------------


def to_json(report: MeasureReport) -> dict[str, Any]:
    """The JSON object of a report."""
    measure = report.measure
    game = report.game
    result: dict[str, Any] = {
        "source": report.source,
        "game": game.name,
        "nash_conv": measure.nash_conv,
        "exploitability": measure.exploitability,
        "gains": measure.gains,
        "values": measure.values,
        "best_response_values": measure.best_values,
        "uniform_nash_conv": report.uniform_nash_conv,
        **({} if game.pot is None else {"pot": game.pot}),
        "verdict": verdict(measure.nash_conv, report.uniform_nash_conv),
        "losses": [_loss_as_json(game, loss) for loss in measure.losses],
    }
    if isinstance(game, TreeGame):
        result["players"] = to_players(game.tree, report.policy.table)
        result["best_response_players"] = _best_responses_by_player(game, measure)
    if report.by_openspiel:
        by_openspiel = asdict(report.by_openspiel)
        by_openspiel["gap"] = report.by_openspiel.gap(measure)
        result["openspiel"] = by_openspiel
    if report.nearest:
        result |= _kuhn_as_json(report, report.nearest)
    return result


def _loss_as_json(game: ExactGame, loss: Loss) -> dict[str, Any]:
    """A loss, whose information set is named by its string, or in large games by its label."""
    return {
        "player": loss.player,
        "key": game.infoset_key(loss.infoset, loss.player),
        "reach": loss.reach,
        "played": loss.played,
        "probability": loss.probability,
        "best": loss.best,
        "lost": loss.lost,
    }


def _best_responses_by_player(game: Game, measure: Measure) -> list[dict[str, int]]:
    """For each player, the action at each information state string."""
    tree = game.tree
    responses: list[dict[str, int]] = [{} for _ in game.agents]
    for owner, key, action in zip(tree.owner, tree.keys, measure.best_responses, strict=True):
        responses[owner][key] = int(action)
    return responses


def _kuhn_as_json(report: MeasureReport, nearest: Nearest) -> dict[str, Any]:
    """What is known in Kuhn only, with actions by name."""
    keys = report.game.tree.keys
    best_responses = report.measure.best_responses.tolist()
    dominated = [
        {
            "key": keys[exposure.infoset],
            "action": Action(exposure.action).name,
            "probability": exposure.probability,
        }
        for exposure in report.exposures
    ]
    return {
        "value": report.measure.values[0],
        "policy": to_names(report.policy.table),
        "best_response": {
            key: Action(action).name for key, action in zip(keys, best_responses, strict=True)
        },
        "distance": nearest.distance,
        "alpha": nearest.alpha,
        "dominated": dominated,
    }


# ---------------------------------------------------------------------------------------------
# Text
# ---------------------------------------------------------------------------------------------


def overview(reports: Sequence[MeasureReport]) -> str:
    """Several reports on policies of one game as a table, one row per policy."""
    first = reports[0]
    agents = first.game.agents
    header = ["policy", "NashConv", *(f"gain {agent}" for agent in agents)]
    if first.nearest:
        header += ["value", "distance", "dominated"]
    else:
        header += [f"value {agent}" for agent in agents]
    if first.by_openspiel:
        header.append("OpenSpiel")
    rows = [_overview_row(report) for report in reports]
    uniform = f"uniform play has NashConv {first.uniform_nash_conv:.6f}, an equilibrium 0"
    return f"{table(header, rows)}\n{uniform}"


def _overview_row(report: MeasureReport) -> list[str]:
    measure = report.measure
    row = [report.source, f"{measure.nash_conv:.6f}"]
    row += [f"{gain:.6f}" for gain in measure.gains]
    if report.nearest:
        row.append(f"{measure.values[0]:+.6f}")
        row.append(f"{report.nearest.distance:.4f}")
        dominated = max((exposure.probability for exposure in report.exposures), default=0.0)
        row.append(f"{dominated:.4f}")
    else:
        row += [f"{value:+.6f}" for value in measure.values]
    if report.by_openspiel:
        row.append(f"{report.by_openspiel.nash_conv:z.6f}")
    return row


def to_text(report: MeasureReport, *, max_losses: int) -> str:
    """A report in detail, with the `max_losses` largest losses."""
    return "\n".join(_lines(report, max_losses))


def _lines(report: MeasureReport, max_losses: int) -> Iterator[str]:
    measure = report.measure
    game = report.game
    words = verdict(measure.nash_conv, report.uniform_nash_conv)
    yield f"{report.source}: NashConv {measure.nash_conv:.6g}, {words}"
    if report.nearest:
        yield f"\n{_kuhn_table(report, report.nearest)}\n"
    else:
        yield f"{game.size_label}\n"
    yield f"{_values_table(report)}\n"
    if report.nearest:
        yield from _kuhn_lines(report, report.nearest)
    players = game.num_players
    yield f"exploitability       {measure.exploitability:.6g} (NashConv / {players} players)"
    if game.pot is not None:
        shares = f"NashConv {game.share_of_pot(measure.nash_conv)}"
        shares += f", exploitability {game.share_of_pot(measure.exploitability)}"
        yield f"in percent           {shares} of {game.pot:,} chips"
    if report.by_openspiel:
        yield from _openspiel_lines(report, report.by_openspiel)
    if measure.losses and max_losses:
        yield from _loss_lines(game, measure, max_losses)


def _values_table(report: MeasureReport) -> str:
    """Values and gains, one column per player."""
    by_name = {
        "value": report.measure.values,
        "value of a best response": report.measure.best_values,
        "gain": report.measure.gains,
    }
    if report.by_openspiel:
        by_name["gain, by OpenSpiel"] = report.by_openspiel.gains
    rows = []
    for name, numbers in by_name.items():
        rows.append([name, *(f"{number:+z.9f}" for number in numbers)])
    return table(("chips per hand", *report.game.agents), rows)


def _kuhn_lines(report: MeasureReport, nearest: Nearest) -> Iterator[str]:
    game = report.game
    yield f"value against {VALUE}  {report.measure.values[0] - float(VALUE):+.6f}"
    equilibrium = f"the equilibrium of alpha {nearest.alpha:.4f}"
    yield f"distance             {nearest.distance:.6f} to {equilibrium}"
    shown = [one for one in report.exposures if one.probability > MIN_PROBABILITY]
    if not shown:
        yield "dominated actions    none played"
    for exposure in shown:
        label = game.infoset_label(exposure.infoset)
        action = game.action_label(exposure.infoset, exposure.action)
        yield f"dominated            {exposure.probability:.4f} on {label}: {action}"


def _openspiel_lines(report: MeasureReport, by_openspiel: OpenSpielMeasure) -> Iterator[str]:
    values = ", ".join(f"{value:+.6f}" for value in by_openspiel.values)
    yield f"OpenSpiel            NashConv {by_openspiel.nash_conv:.6g}, value {values}"
    agrees = "agrees" if report.agrees else "DISAGREES"
    gap = by_openspiel.gap(report.measure)
    yield f"                     {agrees}: the largest difference is {gap:.1e}"


def _loss_lines(game: ExactGame, measure: Measure, count: int) -> Iterator[str]:
    """The information sets where the policy loses most, and the best actions there."""
    total = measure.nash_conv
    shown = measure.losses[:count]
    rows = []
    for loss in shown:
        label = game.infoset_label(loss.infoset, loss.player)
        played = game.action_label(loss.infoset, loss.played, loss.player)
        best = game.action_label(loss.infoset, loss.best, loss.player)
        rows.append(
            (
                shortened(label, MAX_LABEL),
                f"{loss.reach:.4f}",
                f"{played} {loss.probability:.2f}",
                best,
                f"{loss.lost:.6f}",
                f"{loss.lost / total:.0%}" if total else "-",
            )
        )
    header = ("where chips are lost", "reached", "plays most", "best", "chips per hand", "share")
    yield f"\n{table(header, rows)}"
    not_shown = len(measure.losses) - len(shown)
    if not_shown > 0:
        rest = total - sum(loss.lost for loss in shown)
        yield f"... and {game.words_for_other_losses(not_shown)} that lose {rest:.6f} together"


def _kuhn_table(report: MeasureReport, nearest: Nearest) -> str:
    """Probabilities of the policy and of the nearest equilibrium, and the best response."""
    tree = report.game.tree
    names = ("check/call", "bet", "fold")
    header = ("state", *names, *(f"~{name}" for name in names), "best response")
    rows = []
    for infoset, key in enumerate(tree.keys):
        cells = []
        for policy in (report.policy.table, nearest.table):
            for action, probability in enumerate(policy[infoset].tolist()):
                cells.append(f"{probability:.4f}" if tree.legal[infoset, action] else "-")
        best = int(report.measure.best_responses[infoset])
        rows.append((key, *cells, report.game.action_label(infoset, best)))
    return f"{table(header, rows)}\n(~ is the nearest equilibrium)"
