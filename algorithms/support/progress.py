"""A progress bar on standard error, if that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

# Called with the amount done so far and a short note.
Advance: TypeAlias = Callable[[int, str], None]


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[Advance]:
    """A function that updates a bar on standard error, drawn only if that is a terminal."""
    console = Console(stderr=True)
    columns = (  # narrow enough for 80 characters with the longest note
        TextColumn("{task.description}"),
        BarColumn(bar_width=8),
        TextColumn("{task.completed:,.0f}" if total is None else "{task.percentage:.0f}%"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)
