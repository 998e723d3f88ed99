"""`python -m parity.speed`: compare our speed with that of other libraries, on this machine."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from algorithms.support.command import EXIT_OK, Parser, run, table
from algorithms.support.errors import UsageError, unknown
from algorithms.support.files import replacing, require_png
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from parity.contests import Contender, Contest


@dataclass(frozen=True, slots=True)
class Ratio:
    """Our speed divided by a peer's: the median over rounds, and the range.

    The speed of a peer that is not measured here is a published figure.
    """

    contest: str
    unit: str
    peer: str
    ours_per_second: float
    peer_per_second: float
    ratio: float
    lowest: float
    highest: float
    target: float | None
    measured: bool = True


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="python -m parity.speed", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", metavar="NAME", help="run this contest; repeatable")
    add("--rounds", type=int, default=5, help="the number of rounds (%(default)s)")
    add("--json", action="store_true", help="print one JSON list")
    add("--chart", type=Path, metavar="PNG", help="draw the ratios as bars")
    arguments = parser.parse_args(argv)
    return run(lambda: _main(arguments), parser.prog)


def _main(arguments: argparse.Namespace) -> int:
    from parity.contests import OPTIONAL, contests, installed  # they import OpenSpiel

    if arguments.rounds < 1:
        raise UsageError(f"--rounds {arguments.rounds}: must be at least 1")
    if arguments.chart:
        require_png(arguments.chart)
    every = {contest.name: contest for contest in contests()}
    for name in arguments.only or ():
        if name not in every:
            raise unknown("contest", name, every)
    chosen = [every[name] for name in arguments.only or every]
    ratios: list[Ratio] = []
    with progress("timing", len(chosen)) as show:
        for done, contest in enumerate(chosen):
            show(done, contest.name)
            ratios.extend(measure(contest, rounds=arguments.rounds))
    if arguments.chart:
        draw(ratios, arguments.chart)
    if arguments.json:
        print(json.dumps([asdict(ratio) for ratio in ratios], indent=2))
    else:
        print(table(HEADER, map(_row, ratios), left=2))
        if missing := [name for name, package in OPTIONAL.items() if not installed(package)]:
            print(f"not installed, so not timed: {', '.join(missing)} (the extra [peers])")
        if not all(ratio.measured for ratio in ratios):
            print("(published): the authors' figure on their hardware, not measured here")
    return EXIT_OK


def measure(contest: Contest, *, rounds: int) -> list[Ratio]:
    """Time all contenders in each round, so that noise affects them equally."""
    makers = {"ours": contest.ours, **contest.peers}
    warm = {name: _calibrated(make(), contest.seconds) for name, make in makers.items()}
    rates: dict[str, list[float]] = {name: [] for name in warm}
    for _ in range(rounds):
        for name, (contender, units) in warm.items():
            rates[name].append(_rate(contender, units))
    published = {peer: [1 / seconds] * rounds for peer, seconds in contest.published.items()}
    return [
        _ratio(contest, peer, rates["ours"], theirs)
        for peer, theirs in (rates | published).items()
        if peer != "ours"
    ]


def _ratio(contest: Contest, peer: str, ours: list[float], theirs: list[float]) -> Ratio:
    ratios = [mine / right for mine, right in zip(ours, theirs, strict=True)]
    return Ratio(
        contest.name,
        contest.unit,
        peer,
        statistics.median(ours),
        statistics.median(theirs),
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        contest.targets.get(peer),
        measured=peer in contest.peers,
    )


def _calibrated(contender: Contender, seconds: float) -> tuple[Contender, int]:
    """Warm up, and find how many units of work fill a sample of `seconds`."""
    units = contender(1)
    while (rate := _rate(contender, units)) * seconds > 2 * units:
        units = max(2 * units, int(rate * seconds / 2))
    return contender, max(1, int(rate * seconds))


def _rate(contender: Contender, units: int) -> float:
    start = time.perf_counter()
    return contender(units) / (time.perf_counter() - start)


HEADER = ("what", "peer", "ours/s", "peer/s", "ratio", "range", "target")


def _row(ratio: Ratio) -> tuple[str, ...]:
    return (
        f"{ratio.contest} ({ratio.unit})",
        ratio.peer if ratio.measured else f"{ratio.peer} (published)",
        _short(ratio.ours_per_second),
        _short(ratio.peer_per_second),
        f"{ratio.ratio:.1f}x",
        f"{ratio.lowest:.1f}-{ratio.highest:.1f}",
        "" if ratio.target is None else f">= {ratio.target:g}",
    )


def _short(number: float) -> str:
    for scale, letter in ((1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:.3g}{letter}"
    return f"{number:.3g}"


def draw(ratios: Iterable[Ratio], path: Path) -> None:
    """A bar per measured ratio on a log axis; 1 is the peer's own speed."""
    from matplotlib.figure import Figure

    found = [ratio for ratio in ratios if ratio.measured][::-1]
    figure = Figure(figsize=(8, 0.42 * len(found) + 1), layout="constrained")
    axes = figure.subplots()
    labels = [f"{ratio.contest}  vs  {ratio.peer}" for ratio in found]
    bars = axes.barh(labels, [ratio.ratio for ratio in found], color="#2f6fb3", height=0.62)
    axes.bar_label(bars, fmt="%.0fx", padding=3, fontsize=9)
    for place, ratio in enumerate(found):
        if ratio.target:
            axes.plot([ratio.target] * 2, [place - 0.31, place + 0.31], color="#222222", lw=1.5)
    highest = max(ratio.ratio for ratio in found)
    axes.set(xscale="log", xlim=(1, 2 * highest))
    axes.set_xlabel("times the peer's speed\n(black: the target)")
    axes.spines[["top", "right"]].set_visible(False)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=140)


if __name__ == "__main__":
    sys.exit(main())
