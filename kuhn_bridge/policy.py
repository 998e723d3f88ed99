"""A policy for both seats as 12 rows of 3 probabilities, and its forms on paper and on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kuhn_bridge.bridge import INFORMATION_STATES, parse_information_state
from kuhn_bridge.encoding import frozen
from kuhn_bridge.errors import PolicyError, printable, short_repr
from kuhn_bridge.rules import AGENTS, BETTING, DECISIONS, Action, Card, as_seed

Probabilities: TypeAlias = npt.NDArray[np.float64]
Percentages: TypeAlias = tuple[tuple[tuple[float, ...], ...], ...]

FORMAT, VERSION = "kuhn-bridge-policy", 1
ROW_SUM_TOLERANCE = 1e-6  # how far a row may sum from 1: a float32 network is welcome
PERCENT_TOLERANCE = 0.02  # room for two roundings
_FRACTIONS = "; it sums to 1, so these seem to be fractions: multiply them by 100"
MAX_LENGTH = 10_000_000  # of a list, in a table of any game
MAX_BYTES = 2**20  # of a file: 12 rows take one thousandth of it

_ROW_OF = {name: row for row, name in enumerate(INFORMATION_STATES)}
_PARSED = tuple(parse_information_state(name) for name in INFORMATION_STATES)
LEGAL: npt.NDArray[np.bool_] = frozen(
    np.array([[action in BETTING[letters].after for action in Action] for _, letters in _PARSED])
)

# A percentage row is [check, bet, fold, call]: these are the histories of its two pairs.
_PERCENTAGE_PAIRS = (("", "pb"), ("p", "b"))
_FIRST_PAIR = (Action.CHECK_OR_CALL, Action.BET)
_SECOND_PAIR = (Action.FOLD, Action.CHECK_OR_CALL)


class TabularPolicy:
    """What to do at each of the 12 information states, for both players: frozen and validated.

    `probabilities` is float64 `(12, 3)`, read-only, rows as in `INFORMATION_STATES`, columns our
    action IDs. Every row sums to 1 and illegal actions have probability 0.
    """

    __slots__ = ("probabilities",)
    probabilities: Probabilities

    def __init__(self, probabilities: npt.ArrayLike) -> None:
        table = _as_table(probabilities)
        _validate(table)
        object.__setattr__(self, "probabilities", frozen(table))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a TabularPolicy is frozen; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a TabularPolicy is frozen; make a new one")

    @classmethod
    def uniform(cls) -> TabularPolicy:
        """Every legal action equally often."""
        return cls(LEGAL / LEGAL.sum(axis=1, keepdims=True))

    @classmethod
    def random(cls, seed: int) -> TabularPolicy:
        """A policy drawn uniformly from all policies."""
        weights = np.random.default_rng(as_seed(seed)).exponential(size=LEGAL.shape) * LEGAL
        return cls(weights / weights.sum(axis=1, keepdims=True))

    @classmethod
    def from_dict(cls, rows: Mapping[str, Mapping[str, float]]) -> TabularPolicy:
        """From `{"2pb": {"CHECK_OR_CALL": 1.0, "FOLD": 0.0}, ...}`, all 12 information states."""
        _require_same("information states", rows, INFORMATION_STATES)
        table = np.zeros(LEGAL.shape)
        for row, name in enumerate(INFORMATION_STATES):
            legal = [action.name for action in Action if LEGAL[row, action]]
            _require_same(f"actions of {name!r}", rows[name], legal)
            for action in legal:
                table[row, Action[action]] = _number(rows[name][action], f"{name!r} {action}")
        return cls(table)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """The legal actions' names and probabilities under each information state."""
        return {
            name: {a.name: float(self.probabilities[row, a]) for a in Action if LEGAL[row, a]}
            for name, row in _ROW_OF.items()
        }

    @classmethod
    def from_json(cls, text: str) -> TabularPolicy:
        """From the text that `to_json` writes."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise PolicyError(f"not a policy: the JSON is broken ({error})") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise PolicyError(f'not a policy: want an object with "format": "{FORMAT}"')
        if data.get("version") != VERSION:
            raise PolicyError(
                f"policy version {short_repr(data.get('version'))}; this reads {VERSION}"
            )
        if not isinstance(data.get("policy"), dict):
            raise PolicyError('not a policy: "policy" must map information states to actions')
        return cls.from_dict(data["policy"])

    def to_json(self) -> str:
        """One JSON object on one line; floats are written so that they read back exactly."""
        return json.dumps({"format": FORMAT, "version": VERSION, "policy": self.to_dict()})

    @classmethod
    def load(cls, path: str | Path) -> TabularPolicy:
        """From a JSON file."""
        try:
            with Path(path).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise PolicyError(f"{path}: {error.strerror or error}") from None
        except (TypeError, ValueError):
            raise PolicyError(f"{short_repr(path)} is not the name of a file") from None
        if len(content) > MAX_BYTES:
            raise PolicyError(f"{path}: not a policy: it is larger than {MAX_BYTES:,} bytes")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise PolicyError(f"{path}: not a policy: the file is not text") from None
        try:
            return cls.from_json(text)
        except PolicyError as error:
            raise PolicyError(f"{path}: {error}") from None

    @classmethod
    def from_percentages(cls, players: Sequence[Any]) -> TabularPolicy:
        """From what hand-written CFR programs print: one list per player, one row per card.

        A row is `[check, bet, fold, call]` in percent, each pair summing to 100: player_0's second
        pair is after check-bet; player_1's first is after a check, the second after a bet.
        """
        arrays = as_numbers(players)
        if arrays is None:
            raise PolicyError("percentages are numbers: 2 players x 3 cards x 4")
        if arrays.shape != (2, 3, 4):
            raise PolicyError(f"percentages are 2 players x 3 cards x 4; got {arrays.shape}")
        table = np.zeros(LEGAL.shape)
        for seat, card, half in np.ndindex(2, 3, 2):
            values = arrays[seat, card, 2 * half : 2 * half + 2]
            with np.errstate(over="ignore", invalid="ignore"):  # neither sums to 100
                total = values.sum()
            if not abs(total - 100) <= PERCENT_TOLERANCE:  # catches NaN too
                where = f"{AGENTS[seat]} {Card(card).name}"
                hint = _FRACTIONS if abs(total - 1) <= PERCENT_TOLERANCE else ""
                raise PolicyError(f"{where}: the pair {values.tolist()} does not sum to 100{hint}")
            row = _ROW_OF[f"{card}{_PERCENTAGE_PAIRS[seat][half]}"]
            table[row, (_FIRST_PAIR, _SECOND_PAIR)[half]] = values / total
        return cls(table)

    def to_percentages(self) -> Percentages:
        """`(player_0, player_1)`, each three rows `(check, bet, fold, call)` in percent.

        Rounded to 12 decimals, so that what programs print comes back as it was.
        """
        return tuple(
            tuple(
                tuple(
                    round(100 * self[f"{int(card)}{letters}"][action], 12)
                    for letters, actions in zip(pairs, (_FIRST_PAIR, _SECOND_PAIR), strict=True)
                    for action in actions
                )
                for card in Card
            )
            for pairs in _PERCENTAGE_PAIRS
        )

    def likeliest(self) -> TabularPolicy:
        """Always the likeliest action, the lowest ID among equals."""
        return TabularPolicy(np.eye(len(Action))[self.probabilities.argmax(axis=1)])

    def __getitem__(self, name: str) -> dict[Action, float]:
        """The legal actions and probabilities at one information state, e.g. `policy["2pb"]`."""
        card, letters = parse_information_state(name)
        row = self.probabilities[_ROW_OF[f"{int(card)}{letters}"]]
        return {action: float(row[action]) for action in BETTING[letters].after}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TabularPolicy):
            return NotImplemented
        return np.array_equal(self.probabilities, other.probabilities)

    def __hash__(self) -> int:
        return hash(self.probabilities.tobytes())

    def __reduce__(self) -> tuple[type[TabularPolicy], tuple[Probabilities]]:
        return TabularPolicy, (self.probabilities,)

    def __repr__(self) -> str:
        return f"TabularPolicy({self.probabilities.tolist()})"

    def __str__(self) -> str:
        """A table for people: one line per information state."""
        lines = [f"{'state':<6}{'seat':<10}{'card':<6}{'after':<12}  check/call     bet    fold"]
        for letters in DECISIONS:
            row = BETTING[letters]
            for card in Card:
                name = f"{int(card)}{letters}"
                where = f"{name:<6}{AGENTS[row.actor or 0]:<10}{card.name:<6}"
                shown = _cells(self.probabilities[_ROW_OF[name]], LEGAL[_ROW_OF[name]])
                lines.append(f"{where}{'-'.join(row.words) or 'start':<12}{shown}")
        return "\n".join(lines)


def _cells(row: Probabilities, legal: npt.NDArray[np.bool_]) -> str:
    cells = [f"{p:.4f}" if ok else "-" for p, ok in zip(row, legal, strict=True)]
    return f"{cells[0]:>12}{cells[1]:>8}{cells[2]:>8}"


def _as_table(probabilities: npt.ArrayLike) -> Probabilities:
    table = as_numbers(probabilities)
    if table is None:
        raise PolicyError("a policy is a table of numbers, 12 rows x 3 actions")
    if table.shape != LEGAL.shape:
        raise PolicyError(f"a policy has 12 rows x 3 actions; got shape {table.shape}")
    return table + 0.0  # -0.0 becomes 0.0


def as_numbers(values: Any) -> Probabilities | None:
    """`values` as float64 of whatever shape; `None` where something is not a real number."""
    if _is_endless(values):
        return None
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":  # numpy would read text, and drop imaginary parts
            return None
        if array.dtype.kind == "O" and not all(isinstance(number, Real) for number in array.flat):
            return None
        return np.asarray(array, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_endless(values: Any, depth: int = 2) -> bool:
    """Whether numpy would try to hold more than any table has, such as `range(10**9)`."""
    if hasattr(values, "__array__") or isinstance(values, (str, bytes)):
        return False
    try:
        length = len(values)
    except (TypeError, OverflowError) as error:
        return isinstance(error, OverflowError)
    return length > MAX_LENGTH or (depth > 0 and any(_is_endless(v, depth - 1) for v in values))


def _validate(table: Probabilities) -> None:
    for name, row, legal in zip(INFORMATION_STATES, table, LEGAL, strict=True):
        if not (np.isfinite(row).all() and (row >= 0).all()):
            raise PolicyError(f"{name!r}: {row.tolist()} are not probabilities")
        if row[~legal].any():
            names = ", ".join(action.name for action in Action if row[action] and not legal[action])
            raise PolicyError(f"{name!r}: {names} is illegal there, so its probability must be 0")
        with np.errstate(over="ignore"):
            total = row.sum()
        if abs(total - 1) > ROW_SUM_TOLERANCE:
            raise PolicyError(f"{name!r}: the probabilities sum to {total:.6g}, not 1")


def _require_same(what: str, given: Any, wanted: Iterable[str]) -> None:
    if not isinstance(given, Mapping):
        raise PolicyError(f"the {what} must be a map; got {short_repr(given)}")
    missing = [name for name in wanted if name not in given]
    unknown = [printable(name) for name in given if name not in set(wanted)]
    if missing:
        raise PolicyError(f"an incomplete policy: the {what} lack {', '.join(missing)}")
    if unknown:
        raise PolicyError(f"the {what} include {', '.join(unknown)[:80]}, which do not exist here")


def _number(value: Any, where: str) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:  # so neither NaN nor what no float can hold
        raise PolicyError(f"{where}: {short_repr(value)} is not a probability")
    return float(value)
