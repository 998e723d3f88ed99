"""Shared by all commands: one-line errors, exit codes, tables of plain text."""

import argparse
import gc
import io
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from algorithms.support.modules import import_modules
from kuhn_bridge.errors import BridgeError

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130  # Ctrl-C, by the convention of shells
SCRIPT = "kuhn-bridge"  # the script that has all commands
MAX_ERROR_CHARS = 1_000  # a file from a stranger may contain a name of a megabyte
GARBAGE_THRESHOLD = 50_000  # new objects before a garbage collection; Python's default is 700


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors, and the command's name as the user called it.

    The description is the first line of a docstring; there is none under `python -OO`.
    """

    def __init__(self, *, prog: str, description: str | None = None, **options: Any) -> None:
        first_line = (description or "").partition("\n")[0]
        super().__init__(prog=as_called(prog), description=first_line, **options)

    def add_import(self) -> None:
        """Add the option `--import`, which every command has that takes the name of a game."""
        self.add_argument(
            "--import",
            action="append",
            default=[],
            dest="imports",
            metavar="MODULE",
            help="import this module or .py file first, e.g. to register a game; repeatable",
        )

    def error(self, message: str) -> NoReturn:
        """Exit 2 with one line that says what is wrong."""
        self.exit(EXIT_ERROR, f"{self.prog}: {_one_line(message)} (see --help)\n")

    def run(self, body: Callable[[argparse.Namespace], int], argv: Sequence[str] | None) -> int:
        """The exit code of `body` with the parsed arguments; errors are those of `run`."""
        args = self.parse_args(argv)

        def import_and_run() -> int:
            import_modules(getattr(args, "imports", ()))
            return body(args)

        return run(import_and_run, self.prog)


def number(
    low: float, high: float = math.inf, *, kind: Callable[[str], Any] = int
) -> Callable[[str], Any]:
    """The `type` of an argument that is a number from `low` to `high`; NaN is refused."""
    want = f"at least {low:,}" if high == math.inf else f"a number from {low} to {high}"

    def parse(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"want {want}, not {text}")
        return value

    parse.__name__ = kind.__name__  # argparse: invalid int value
    return parse


def whole(text: str) -> int:
    """The `type` of an argument that is a whole number, which may be written as 1e6."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not number.is_integer():  # nor are infinity and NaN
        raise ValueError(text)
    return int(number)


whole.__name__ = "int"  # argparse: invalid int value


def as_called(prog: str) -> str:
    """`kuhn-bridge train-ppo` for `python -m algorithms.train_ppo` if the script was called."""
    if Path(sys.argv[0]).stem != SCRIPT:
        return prog
    return f"{SCRIPT} {prog.rpartition('.')[2].replace('_', '-')}"


def run(main: Callable[[], int], name: str) -> int:
    """The exit code of `main()`; a user's mistake is one line on standard error and exit 2."""
    collect_seldom()
    _prepare_output()
    try:
        code = main()
        sys.stdout.flush()
        return code
    except BridgeError as error:
        message = str(error)
    except BrokenPipeError:  # the reader of our output has closed it, e.g. `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except ModuleNotFoundError as error:
        message = f"this needs the package {error.name}; pip install 'kuhn-bridge[all]'"
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        message = f"{path}{error.strerror or error}"
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    print(f"{name}: {_one_line(message)}", file=sys.stderr)
    return EXIT_ERROR


def collect_seldom() -> None:
    """Collect garbage less often.

    Importing torch and similar libraries creates half a million objects that stay alive. With the
    default threshold, searching them for garbage takes a fifth of a short command's time.
    """
    gc.set_threshold(GARBAGE_THRESHOLD, *gc.get_threshold()[1:])


def _one_line(message: str) -> str:
    return shortened(" ".join(message.split()), MAX_ERROR_CHARS)


def _prepare_output() -> None:
    """Open a closed standard output (`>&-`), and escape characters that its encoding lacks."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # open until exit
    raising = ("strict", "surrogateescape")  # the second one is Python's choice for LC_ALL=C
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in raising:
        sys.stdout.reconfigure(errors="backslashreplace")


def shortened(text: str, width: int) -> str:
    """At most `width` characters, with `...` in the middle of a longer text."""
    if len(text) <= width:
        return text
    end = width // 3
    return f"{text[: width - end - 3]}...{text[-end:]}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Plain text with the first `left` columns aligned to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    columns = (f"{{:{'<' if i < left else '>'}{width}}}" for i, width in enumerate(widths))
    line = "  ".join(columns)
    return "\n".join(line.format(*cells).rstrip() for cells in lines)
