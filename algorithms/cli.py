"""What the commands share: one-line errors, exit codes, whole files or none, tables, progress."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kuhn_bridge.errors import KuhnError

HOLDS, DOES_NOT_HOLD, COULD_NOT_RUN = 0, 1, 2


class UsageError(KuhnError):
    """What the user asked for cannot be done."""


class Parser(argparse.ArgumentParser):
    """argparse, but a mistake is one line."""

    def error(self, message: str) -> NoReturn:
        """Exit 2 with one line that says what is wrong and where to look."""
        self.exit(COULD_NOT_RUN, f"{self.prog}: {message} (see --help)\n")


def run(main: Callable[[], int], name: str) -> int:
    """`main()`'s exit code; a user's mistake becomes one line on standard error and exit 2."""
    try:
        code = main()
        sys.stdout.flush()
        return code
    except KuhnError as error:
        message = str(error)
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return HOLDS
    except ModuleNotFoundError as error:
        message = f"this needs the package {error.name}; pip install 'kuhn-bridge[all]'"
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        message = f"{where}{error.strerror or error}"
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return COULD_NOT_RUN


def first_line(error: Exception) -> str:
    """What another library's error says, in one line."""
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def unknown(what: str, given: str, known: Iterable[str]) -> UsageError:
    """An error that names the nearest thing that exists."""
    names = list(known)
    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(given.lower(), lower, n=1, cutoff=0.4)
    hint = f"did you mean {lower[close[0]]!r}?" if close else f"there are {', '.join(names[:12])}"
    return UsageError(f"unknown {what} {given!r}: {hint}")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target}: is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no directory {target.parent}")
    try:
        # The suffix stays the last part of the name: some writers choose a format by it.
        handle, name = tempfile.mkstemp(
            prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent
        )
    except OSError as error:
        raise UsageError(f"{target}: cannot write there ({error.strerror})") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def require_png(path: str | Path) -> None:
    """Refuse other names for a picture, before the work that it shows."""
    if Path(path).suffix.lower() != ".png":
        raise UsageError(f"{path}: a picture is written as .png; give a name that ends so")


def write_text(path: str | Path, text: str) -> None:
    """The whole file or nothing."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Aligned plain text: the first `left` columns to the left, the others to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


class _Done(ProgressColumn):
    """How much is done: a share of a known total, or else a count."""

    def render(self, task: Task) -> Text:
        """`37%` or `120,000`."""
        return Text(f"{task.completed:,.0f}" if task.total is None else f"{task.percentage:.0f}%")


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[Callable[[int, str], None]]:
    """A bar on standard error; call it with how far along things are and a word about it.

    Nothing is drawn when standard error is not a terminal.
    """
    console = Console(stderr=True)
    columns = (  # narrow enough for 80 characters with the longest note
        TextColumn("{task.description}"),
        BarColumn(bar_width=8),
        _Done(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total, note="")

        def advance(done: int, note: str = "") -> None:
            bar.update(task, completed=done, note=note)

        yield advance


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
