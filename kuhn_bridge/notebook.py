"""What objects look like in a notebook: pieces of HTML without scripts, for light and dark pages.

Text has the color of the page. Lines, bars and backgrounds are half transparent, so that they look
right on white and on black. All text is escaped.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

# A rule that names the class twice wins over JupyterLab's, which align cells to the right and color
# every second row. Tables have a class so that the documentation's theme draws no grid around them.
STYLE = """<style>
.kuhn-bridge {font: 13px/1.45 system-ui, sans-serif; max-width: 54em; overflow-x: auto;
  padding: .6em .9em; margin: .2em 0;
  border: 1px solid rgba(128,128,128,.35); border-radius: 6px; color: inherit}
.kuhn-bridge h4 {margin: 0 0 .35em; font-size: 14px; font-weight: 600; overflow-wrap: anywhere}
.kuhn-bridge p {margin: .35em 0; opacity: .8}
.kuhn-bridge.kuhn-bridge table {border-collapse: collapse; margin: .3em 0; border: 0;
  background: none; font: inherit; color: inherit}
.kuhn-bridge.kuhn-bridge tr:nth-child(n) {background: none}
.kuhn-bridge.kuhn-bridge th, .kuhn-bridge.kuhn-bridge td {text-align: left; border: 0;
  padding: .15em 1.3em .15em 0; line-height: 1.45; vertical-align: middle; font-size: 13px;
  color: inherit}
.kuhn-bridge.kuhn-bridge th {font-weight: 600; opacity: .75; white-space: nowrap}
.kuhn-bridge.kuhn-bridge .facts th {vertical-align: top}
.kuhn-bridge .numbers td:not(:first-child) {white-space: nowrap}
.kuhn-bridge.kuhn-bridge .number {text-align: right; font-variant-numeric: tabular-nums}
.kuhn-bridge .strip {display: flex; width: 17em; height: 1.45em; border-radius: 3px;
  overflow: hidden; background: rgba(128,128,128,.12)}
.kuhn-bridge .strip span {overflow: hidden; white-space: nowrap; font-size: 11px;
  line-height: 1.75; text-indent: .4em; text-align: left}
.kuhn-bridge .playing-card {display: inline-block; min-width: 1.1em; padding: .3em .45em;
  margin-right: .4em; border: 1px solid rgba(128,128,128,.6); border-radius: 4px;
  text-align: center; font-size: 16px; font-weight: 600; background: rgba(128,128,128,.1)}
.kuhn-bridge svg {max-width: 100%; height: auto}
.kuhn-bridge svg text {fill: currentColor; font-size: 11px; opacity: .8}
@media (max-width: 480px) {
  .kuhn-bridge.kuhn-bridge .strips td {display: block; padding-right: 0}
}
</style>"""
# Half transparent: blue, orange, green, purple, grey.
COLORS = (
    "rgba(31,119,210,.5)",
    "rgba(240,130,20,.5)",
    "rgba(50,165,80,.5)",
    "rgba(150,90,200,.5)",
    "rgba(128,128,128,.5)",
)
LINE_COLORS = ("#2b83d6", "#e0801c")
STRIP_WIDTH = 17 * 13  # of a bar, in pixels
# Of a part's label, in pixels: it is left out where it does not fit.
CHAR_WIDTH = 6
LABEL_MARGIN = 8
ROUNDING = 1e-12  # what a NashConv of 0 may be in floating point
# The size of a picture and its margins, in pixels.
WIDTH = 520
HEIGHT = 220
LEFT = 56
RIGHT = 12
TOP = 10
BOTTOM = 30
MAX_TICKS = 6


def box(title: str, *parts: str) -> str:
    """A frame with a title; the parts are HTML."""
    return f'{STYLE}<div class="kuhn-bridge"><h4>{escape(title)}</h4>{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """A line of text."""
    return f"<p>{escape(text)}</p>"


def nash_conv_text(value: float) -> str:
    """A NashConv or an exploitability; figures that are only rounding errors are not shown."""
    return f"{value:.6g}" if value == 0 or value >= ROUNDING else f"below {ROUNDING:g}"


def facts(rows: Mapping[str, str]) -> str:
    """A table of names and values."""
    lines = [
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items()
    ]
    return f'<table class="facts">{"".join(lines)}</table>'


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()
) -> str:
    """A table of texts; `numbers` are the columns that are aligned to the right."""
    lines = [_row("th", header, numbers)]
    lines += [_row("td", row, numbers) for row in rows]
    return f'<table class="numbers">{"".join(lines)}</table>'


class Part(NamedTuple):
    """A part of a bar: its name, its share of the whole, and the number of its color."""

    label: str
    share: float
    color: int


def strips(rows: Iterable[tuple[str, Sequence[Part]]]) -> str:
    """A table with a bar per row, divided in proportion to probabilities."""
    lines = []
    for name, parts in rows:
        spans = [_span(part) for part in parts if part.share > 0]
        bar = f'<div class="strip">{"".join(spans)}</div>'
        lines.append(f"<tr><td>{escape(name)}</td><td>{bar}</td></tr>")
    return f'<table class="strips">{"".join(lines)}</table>'


def playing_cards(names: Iterable[str]) -> str:
    """Cards, face up."""
    return "".join(f'<span class="playing-card">{escape(name)}</span>' for name in names)


def _span(part: Part) -> str:
    """A part of a bar; `title` shows when the pointer rests on it."""
    text = f"{part.label} {part.share:.0%}"
    fits = LABEL_MARGIN + CHAR_WIDTH * len(text) <= part.share * STRIP_WIDTH
    shown = escape(text) if fits else ""
    style = f"width:{100 * part.share:.2f}%;background:{COLORS[part.color % len(COLORS)]}"
    return f'<span style="{style}" title="{escape(text)}">{shown}</span>'


def _row(tag: str, cells: Sequence[str], numbers: Sequence[int]) -> str:
    texts = []
    for column, cell in enumerate(cells):
        aligned = ' class="number"' if column in numbers else ""
        texts.append(f"<{tag}{aligned}>{escape(cell)}</{tag}>")
    return f"<tr>{''.join(texts)}</tr>"


def line_chart(
    series: Mapping[str, Sequence[tuple[float, float]]], *, x_label: str, y_label: str
) -> str:
    """A picture (SVG) of lines through points with x >= 0 and y > 0, with a logarithmic y axis."""
    positive = {name: _positive(points) for name, points in series.items()}
    shown = {name: points for name, points in positive.items() if points}
    ys = [y for points in shown.values() for _, y in points]
    xs = [x for points in shown.values() for x, _ in points]
    if not ys:
        return paragraph(f"{y_label}: no figures")
    low = math.floor(math.log10(min(ys)))
    high = max(low + 1, math.ceil(math.log10(max(ys))))
    largest_x = max(xs) or 1.0

    def place(x: float, y: float) -> str:
        across = LEFT + (WIDTH - LEFT - RIGHT) * x / largest_x
        down = TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(y)) / (high - low)
        return f"{across:.1f},{down:.1f}"

    parts = [_y_axis(low, high), _x_axis(largest_x, x_label)]
    for number, (name, points) in enumerate(shown.items()):
        color = LINE_COLORS[number % len(LINE_COLORS)]
        path = " ".join(place(x, y) for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        at = f'x="{WIDTH - RIGHT - 4}" y="{TOP + 12 + 15 * number}"'
        name_style = f"fill:{color};opacity:1"
        parts.append(f'<text {at} text-anchor="end" style="{name_style}">{escape(name)}</text>')
    label = escape(f"{y_label} over {x_label}")
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _positive(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that a logarithmic axis can show."""
    return [(x, y) for x, y in points if math.isfinite(y) and y > 0]


def _y_axis(low: int, high: int) -> str:
    """A line and a label for some powers of ten."""
    step = math.ceil((high - low) / MAX_TICKS)
    parts = []
    for power in range(low, high + 1, step):
        y = TOP + (HEIGHT - TOP - BOTTOM) * (high - power) / (high - low)
        line = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
        parts.append(f'<line {line} stroke="rgba(128,128,128,.35)"/>')
        label = f'x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end"'
        parts.append(f"<text {label}>{10.0**power:g}</text>")
    return "".join(parts)


def _x_axis(right: float, name: str) -> str:
    """The ends of the axis, and its name between them."""
    y = HEIGHT - 10
    middle = (LEFT + WIDTH - RIGHT) / 2
    return (
        f'<text x="{LEFT}" y="{y}" text-anchor="middle">0</text>'
        f'<text x="{middle:.0f}" y="{y}" text-anchor="middle">{escape(name)}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{y}" text-anchor="end">{right:,.0f}</text>'
    )
