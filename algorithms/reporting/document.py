"""The JSON document that the page shows: everything in it is computed here, nothing on the page.

    format, version    "kuhn-bridge-report", 1
    mode               "report", or "play": the page then opens at the table
    made_by            versions of this package and of OpenSpiel
    game               name, players, nodes, infosets, constant_sum, uniform_nash_conv
    policies           one object per policy; the last may be the `reference`
    tree               the game and its labels, or null: then `without_tree` says why

An array is `{"dtype": ..., "data": base64 of its little-endian bytes}`. With N nodes in
breadth-first order, D of them decisions, I information sets and S slots (legal actions, by
information set), `tree` has

    children       (N,) how many children a node has; those of one node follow each other
    infoset        (N,) the information set of a decision, -1 elsewhere
    outcomes       one entry per child of a chance node, in the order of the nodes: `action` IDs,
                   `probability`, and `label` (an index into `labels`)
    returns        the different returns, one number per player; `return_index` (terminals,)
    owner          (I,) the player; `slots` (I,) how many legal actions
    keys           (I,) information state strings; `infoset_labels` (I,) or null where they are
                   nothing but the string
    slot_action    (S,) action IDs; `slot_label` (S,) indices into `labels`
    labels         the different labels of actions and of chance outcomes

and the `tables` of a policy have, as `algorithms.exact.action_values` defines them,
`probabilities`, `values` and `costs` (S,), `reach` and `losses` (I,), `beliefs` (D,), and
`ranking`: the information sets that lose chips, the largest loss first. The `seats` of a policy
have for each player what a best response and what the reference win per hand when all others play
the policy.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

import kuhn_bridge
from algorithms.exact.action_values import action_values
from algorithms.exact.solving import NAMES as VARIANTS
from algorithms.exact.tree import CHANCE, Tree, ranges
from algorithms.exact.values import NO_LOSS, evaluate_policy, joint_policy
from algorithms.games import Game
from algorithms.policies.report import uniform_nash_conv, verdict
from algorithms.reporting.measures import Entry, Measure
from algorithms.support.arrays import Float64Array

FORMAT, VERSION = "kuhn-bridge-report", 1
MAX_NODES = 300_000  # of a game with an explorer: the page takes some 15 bytes per node
BOUNDS = (
    "At least: what trained best responses gain is a lower bound of NashConv, and a smaller bound "
    "does not show that a policy is better."
)
_INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, np.int32)

Mode: TypeAlias = Literal["report", "play"]
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GameFacts:
    """What a report says about a game; None stands for what is not known."""

    name: str
    num_players: int
    nodes: int | None = None
    infosets: int | None = None
    constant_sum: bool = True
    uniform_nash_conv: float | None = None


def facts_of(game: Game) -> GameFacts:
    """What is known about a game: its size and uniform play only where policies are exact."""
    known: Json = {"name": game.name, "num_players": game.num_players}
    if game.is_exact:
        known["uniform_nash_conv"] = uniform_nash_conv(game)
    if game.native:
        known["infosets"] = sum(game.native.num_infosets)
    elif game.fits_tree:
        tree = game.tree
        known |= {"nodes": tree.num_nodes, "infosets": len(tree.keys)}
        known["constant_sum"] = _is_constant_sum(tree)
    return GameFacts(**known)


def game_document(
    game: Game,
    entries: Sequence[Entry],
    reference: Entry | None = None,
    *,
    mode: Mode = "report",
    max_nodes: int = MAX_NODES,
) -> Json:
    """The document of policies of a game; without tree above `max_nodes`.

    Args:
        game: whose policies all entries are.
        entries: policies in the order in which they are shown.
        reference: an equilibrium, or what stands for one; it is shown beside the others.
        mode: whether the page opens as a report or at the table.
        max_nodes: of the largest game that the page can be walked through.
    """
    facts = facts_of(game)
    if facts.nodes is None or facts.nodes > max_nodes:
        why = _why_without_tree(facts, entries, max_nodes)
        return summary_document(facts, entries, reference, why=why, mode=mode)
    found = summary_document(facts, entries, reference, why="", mode=mode)
    against = None if reference is None else reference.table
    for policy, one in zip(found["policies"], _all(entries, reference), strict=True):
        policy["losses"] = []  # the tables have them all
        policy["tables"] = _tables(game.tree, one)
        policy["seats"] = _seats(game.tree, one, against)
    return found | {"tree": _tree(game)}


def summary_document(
    facts: GameFacts,
    entries: Sequence[Entry],
    reference: Entry | None = None,
    *,
    why: str,
    mode: Mode = "report",
) -> Json:
    """The document without a tree: measures, losses in words, curves; `why` says why."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "mode": mode,
        "made_by": _versions(),
        "game": asdict(facts),
        "policies": [_summary(facts, one, reference) for one in _all(entries, reference)],
        "tree": None,
        "without_tree": why,
    }


def _why_without_tree(facts: GameFacts, entries: Sequence[Entry], max_nodes: int) -> str:
    size = "does not fit a tree" if facts.nodes is None else f"has {facts.nodes:,} nodes"
    limit = f"the explorer and the table are left out above {max_nodes:,} nodes."
    bounded = any(one.measure and one.measure.interval for one in entries)
    bounds = f" {BOUNDS}" if bounded else ""
    return f"{facts.name} {size}: {limit}{bounds}"


def _all(entries: Sequence[Entry], reference: Entry | None) -> list[Entry]:
    return [*entries, *([] if reference is None else [reference])]


def _versions() -> dict[str, str]:
    """The versions of kuhn-bridge, and of OpenSpiel where it is installed."""
    found = {"kuhn-bridge": kuhn_bridge.__version__}
    try:
        return found | {"open_spiel": metadata.version("open_spiel")}
    except metadata.PackageNotFoundError:
        return found


def _summary(facts: GameFacts, one: Entry, reference: Entry | None) -> Json:
    return {
        "name": one.name,
        "role": _role(facts, one) if one is reference else None,
        **_measure(facts, one.measure),
        "curve": _curve(one),
        "notes": {name: _plain(values) for name, values in one.notes.items()},
        "losses": [asdict(line) for line in one.losses],
        "tables": None,
        "seats": [],
    }


def _measure(facts: GameFacts, measure: Measure | None) -> Json:
    """How good a policy is: without any NashConv where it was not measured."""
    if measure is None:
        return {"interval": None, "gains": (), "values": (), "best_values": (), "verdict": ""}
    end = "" if measure.interval is None else "_at_least"
    return {
        f"nash_conv{end}": measure.nash_conv,
        f"exploitability{end}": measure.nash_conv / facts.num_players,
        "interval": measure.interval,
        "gains": measure.gains,
        "values": measure.values,
        "best_values": measure.best_values,
        "verdict": _verdict(facts, measure),
    }


def _role(facts: GameFacts, reference: Entry) -> str:
    """What the reference is called: CFR approaches equilibria of two-player constant-sum games."""
    kind = reference.name.partition(":")[0]
    if kind not in (*VARIANTS, "nash"):
        return "reference"
    zero_sum = facts.num_players == 2 and facts.constant_sum
    return "equilibrium" if zero_sum else f"average of {kind.upper()}"


def _verdict(facts: GameFacts, measure: Measure) -> str:
    """The NashConv in words, where it is exact and uniform play is known."""
    if measure.interval is not None or facts.uniform_nash_conv is None:
        return ""
    return verdict(measure.nash_conv, facts.uniform_nash_conv)


def _curve(one: Entry) -> Json | None:
    if not one.curve:
        return None
    return {
        "steps": [point.steps for point in one.curve],
        "last": [point.last for point in one.curve],
        "average": [point.average for point in one.curve],
    }


def _plain(values: Mapping[str, Any]) -> dict[str, str]:
    """Settings as text, without those that are empty."""
    texts = {str(name): _text(value) for name, value in values.items()}
    return {name: text for name, text in texts.items() if text}


def _text(value: Any) -> str:
    """As it would be typed; a number that was measured has six digits."""
    text = str(value)
    return f"{value:.6g}" if isinstance(value, float) and len(text) > 8 else text


def _is_constant_sum(tree: Tree) -> bool:
    sums = tree.returns[:, tree.terminals].sum(axis=0)
    return bool(np.ptp(sums) <= 1e-9 * max(1.0, float(np.abs(tree.returns).max())))


def _tables(tree: Tree, one: Entry) -> Json:
    """What the explorer and the table show of one policy."""
    table = _table(one)
    found = action_values(tree, table)
    order = np.argsort(-found.losses, kind="stable")
    return {
        "probabilities": _floats(table[tree.legal]),
        "values": _floats(found.values),
        "costs": _floats(found.costs),
        "reach": _floats(found.reach),
        "losses": _floats(found.losses),
        "beliefs": _floats(found.beliefs),
        "ranking": _integers(order[found.losses[order] > NO_LOSS]),
    }


def _table(one: Entry) -> Float64Array:
    assert one.table is not None, one.name  # noqa: S101  # a game with a tree has tables
    return one.table


def _seats(tree: Tree, one: Entry, reference: Float64Array | None) -> list[Json]:
    """What others win in each seat, in chips per hand, when all other seats play the policy."""
    return [
        {
            "best_response": best,
            "reference": None if reference is None else _value(tree, one, reference, seat),
        }
        for seat, best in enumerate(one.measure.best_values if one.measure else ())
    ]


def _value(tree: Tree, one: Entry, guest: Float64Array, seat: int) -> float:
    tables = [guest if player == seat else _table(one) for player in range(tree.num_players)]
    return evaluate_policy(tree, joint_policy(tree, tables)).values[seat]


def _tree(game: Game) -> Json:
    tree, labels = game.tree, _Labels()
    children = np.diff(tree.first_child)
    chance = np.flatnonzero((tree.player == CHANCE) & (children > 0))
    outcomes = ranges(tree.first_child[chance], tree.first_child[chance + 1])
    outcome_labels = [label for node in chance.tolist() for label in game.chance_labels(node)]
    rows, index = np.unique(tree.returns[:, tree.terminals].T, axis=0, return_inverse=True)
    slots = [(int(infoset), int(action)) for infoset, action in tree.slots[:, [0, 3]]]
    return {
        "children": _integers(children),
        "infoset": _integers(tree.infoset),
        "outcomes": {
            "action": _integers(tree.action[outcomes]),
            "probability": _floats(tree.chance_probability[outcomes]),
            "label": _integers(labels.indices(outcome_labels)),
        },
        "returns": rows.tolist(),
        "return_index": _integers(index.reshape(-1)),
        "owner": _integers(tree.owner),
        "slots": _integers(np.diff(tree.first_slot)),
        "keys": list(tree.keys),
        "infoset_labels": _infoset_labels(game),
        "slot_action": _integers(tree.slots[:, 3]),
        "slot_label": _integers(labels.indices(game.action_label(*slot) for slot in slots)),
        "labels": labels.texts,
    }


def _infoset_labels(game: Game) -> list[str] | None:
    """Names in words; None where they only quote the information state strings."""
    tree = game.tree
    found = [game.infoset_label(infoset) for infoset in range(len(tree.keys))]
    quotes = (repr(" ".join(key.split())) for key in tree.keys)
    same = all(quote in label for quote, label in zip(quotes, found, strict=True))
    return None if same else found


class _Labels:
    """Texts that occur many times, each kept once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def indices(self, texts: Iterable[str]) -> list[int]:
        """Where each text stands in `texts`."""
        return [self._places.setdefault(text, len(self._places)) for text in texts]

    @property
    def texts(self) -> list[str]:
        """All texts met so far."""
        return list(self._places)


def _floats(values: npt.ArrayLike) -> Json:
    """float32: seven digits are more than the page shows."""
    return _encoded(np.asarray(values, "<f4"), "float32")


def _integers(values: npt.ArrayLike) -> Json:
    """The smallest type that holds all values."""
    numbers = np.asarray(values, np.int64)
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    kind = next(k for k in _INTEGERS if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return _encoded(numbers.astype(np.dtype(kind).newbyteorder("<")), np.dtype(kind).name)


def _encoded(array: npt.NDArray[Any], dtype: str) -> Json:
    return {"dtype": dtype, "data": base64.b64encode(array.tobytes()).decode()}
