"""Lower bounds in words, as JSON, and as exit codes: never presented as NashConv itself."""

from collections.abc import Sequence
from typing import Any

from algorithms.learning.best_response import LowerBound, SeatBound
from algorithms.support import command
from algorithms.support.errors import UsageError


def to_text(
    source: str,
    bound: LowerBound,
    *,
    uniform: LowerBound | None = None,
    exact: Sequence[float] | None = None,
) -> str:
    """The bound, the chosen responses, and the budget that found them.

    Args:
        source: name of the policy.
        bound: lower bound of the policy.
        uniform: lower bound of uniform play, found in the same way.
        exact: each player's exact gain, if known, to print the share that was found.
    """
    header = ["seat", "chosen response", "gain", "95% interval", "runs", "CPU time"]
    rows = [_row(seat) for seat in bound.seats]
    if exact is not None:
        header += ["exact gain", "share"]
        for row, seat, gain in zip(rows, bound.seats, exact, strict=True):
            row += [f"{gain:+z.6f}", f"{seat.chosen.gain / gain:.0%}" if gain > 0 else "-"]
    lines = [
        f"{source}: {_at_least(bound)}",
        "",
        command.table(header, rows, left=2),
        "",
        f"each run learned from {bound.decisions:,} decisions; "
        f"each gain was measured on {bound.hands:,} fresh hands",
    ]
    if not bound.found:
        lines.insert(
            1, "no response won more than the policy: that does not show that NashConv is small"
        )
    if uniform is not None and uniform is not bound:
        lines.append(f"uniform play, measured in the same way: {_at_least(uniform)}")
    if exact is not None:
        share = bound.share_of(exact)
        found = "" if share is None else f": the responses found {share:.0%}"
        lines.append(f"exact NashConv {sum(exact):.6g}{found}")
    return "\n".join(lines)


def to_json(source: str, bound: LowerBound, *, uniform: LowerBound | None = None) -> dict[str, Any]:
    """One object for machines; it has no `nash_conv`."""
    found: dict[str, Any] = {
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
        found["uniform_nash_conv_at_least"] = uniform.nash_conv_at_least
        found["uniform_interval"] = list(uniform.interval)
    return found


def exit_code(bounds: Sequence[LowerBound], limit: float | None) -> int:
    """`EXIT_FAILED` if a bound exceeds the limit; otherwise an error, as it proves nothing."""
    if limit is None:
        return command.EXIT_OK
    largest = max(bound.nash_conv_at_least for bound in bounds)
    if largest > limit:
        return command.EXIT_FAILED
    raise UsageError(
        f"--max {limit:g}: NashConv is at least {largest:.6g}, "
        "but a bound cannot show that NashConv is small"
    )


def _row(seat: SeatBound) -> list[str]:
    low, high = seat.chosen.interval
    return [
        f"player_{seat.seat}",
        seat.chosen.candidate,
        f"{seat.chosen.gain:+z.6f}",
        f"{low:z.4f} to {high:z.4f}" if low < high else "-",
        f"{seat.runs}",
        f"{seat.cpu_seconds:.0f} s",
    ]


def _at_least(bound: LowerBound) -> str:
    if not bound.found:
        return "no gain found, NashConv at least 0"
    low, high = bound.interval
    return f"NashConv at least {bound.nash_conv_at_least:.4f} (95% interval {low:.4f}-{high:.4f})"
