"""What the commands share: one-line errors, exit codes, tables."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from algorithms.support.garbage import collect_seldom
from kuhn_bridge.errors import BridgeError

EXIT_OK, EXIT_FAILED, EXIT_ERROR = 0, 1, 2
EXIT_INTERRUPTED = 130  # by Ctrl-C, as shells have it
SCRIPT = "kuhn-bridge"  # all commands under one name
LONGEST = 1_000  # characters of an error: a stranger's file may hold a name of a megabyte


class Parser(argparse.ArgumentParser):
    """argparse, but a mistake is one line, and a command goes by the name it was called by."""

    def __init__(self, *, prog: str, **options: Any) -> None:
        super().__init__(prog=as_called(prog), **options)

    def error(self, message: str) -> NoReturn:
        """Exit 2 with one line that says what is wrong and where to look."""
        self.exit(EXIT_ERROR, f"{self.prog}: {_one_line(message)} (see --help)\n")


def as_called(prog: str) -> str:
    """`kuhn-bridge train-ppo` for `python -m algorithms.train_ppo` where the script was called."""
    if Path(sys.argv[0]).stem != SCRIPT:
        return prog
    return f"{SCRIPT} {prog.rpartition('.')[2].replace('_', '-')}"


def summary(doc: str | None) -> str:
    """The first line of a docstring; nothing where Python runs without them (`-OO`)."""
    return (doc or "").partition("\n")[0]


def run(main: Callable[[], int], name: str) -> int:
    """`main()`'s exit code; a user's mistake becomes one line on standard error and exit 2."""
    collect_seldom()
    _prepare_output()
    try:
        code = main()
        sys.stdout.flush()
        return code
    except BridgeError as error:
        message = str(error)
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except ModuleNotFoundError as error:
        message = f"this needs the package {error.name}; pip install 'kuhn-bridge[all]'"
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        message = f"{where}{error.strerror or error}"
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    print(f"{name}: {_one_line(message)}", file=sys.stderr)
    return EXIT_ERROR


def _one_line(message: str) -> str:
    return shortened(" ".join(message.split()), LONGEST)


def _prepare_output() -> None:
    """Standard output that exists (`>&-`), and shows what its encoding has no letters for."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # to the end
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def shortened(text: str, width: int) -> str:
    """At most `width` characters; what is left out is in the middle."""
    if len(text) <= width:
        return text
    end = width // 3
    return f"{text[: width - end - 3]}...{text[-end:]}"


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
