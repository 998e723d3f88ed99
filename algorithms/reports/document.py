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

and the `tables` of a policy have, as `algorithms.nashconv` defines them,
`probabilities`, `values` and `costs` (S,), `reach` and `losses` (I,), `beliefs` (D,), and
`ranking`: the information sets that lose chips, the largest loss first. The `seats` of a policy
have, for each player, the values of a best response and of the reference when all others play the
policy.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

import kuhn_bridge
from algorithms.games import Game
from algorithms.nashconv import (
    NO_LOSS,
    Loss,
    Measure,
    action_values,
    evaluate_policy,
    joint_policy,
)
from algorithms.policies import Policy
from algorithms.reports.measure_report import uniform_nash_conv, verdict
from algorithms.self_play.curve import Curve
from algorithms.solvers import NAMES as VARIANTS
from algorithms.tree import CHANCE, Tree, ranges

MAX_NODES = 300_000  # of a game with an explorer: the page takes about 15 bytes per node
MAX_LOSSES = 500  # listed in words where there is no explorer
BOUNDS = (
    " At least: what trained best responses gain is a lower bound of NashConv, and a smaller bound "
    "does not show that a policy is better."
)
CURVE = ("steps", "last", "average")
_INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, np.int32)

Mode: TypeAlias = Literal["report", "play"]
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One policy of a report."""

    name: str
    policy: Policy
    measure: Any = None  # a `Measure`, a `LowerBound`, or None if the policy was not measured
    curve: Curve = ()
    notes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # settings, by heading


def game_document(
    game: Game, entries: Sequence[Entry], reference: Entry | None = None, *, mode: Mode = "report"
) -> Json:
    """The document of policies of a game, with its tree up to `MAX_NODES` nodes.

    `reference` is the entry that the others are compared with, if any, e.g. an equilibrium.
    """
    facts = game_facts(game)
    name, nodes = facts["name"], facts["nodes"]
    tree = None if nodes is None or nodes > MAX_NODES else game.tree
    policies = [
        {
            "name": one.name,
            "role": _role(facts, one) if one is reference else None,
            **_measure(facts, one.measure),
            "curve": {x: [getattr(p, x) for p in one.curve] for x in CURVE if one.curve} or None,
            "notes": {heading: _plain(values) for heading, values in one.notes.items()},
            "losses": [] if tree else _losses(game, one.measure),
            "tables": _tables(tree, one.policy.table) if tree else None,
            "seats": _seats(tree, one, reference) if tree else [],
        }
        for one in entries
    ]
    size = "does not fit a tree" if nodes is None else f"has {nodes:,} nodes"
    limit = f"the explorer and the table are left out above {MAX_NODES:,} nodes."
    bounds = BOUNDS if any(policy["interval"] for policy in policies) else ""
    versions = {"kuhn-bridge": kuhn_bridge.__version__}
    for found in metadata.distributions(name="open_spiel"):
        versions["open_spiel"] = found.version
    return {
        "format": "kuhn-bridge-report",
        "version": 1,
        "mode": mode,
        "made_by": versions,
        "game": facts,
        "policies": policies,
        "tree": _tree(game) if tree else None,
        "without_tree": "" if tree else f"{name} {size}: {limit}{bounds}",
    }


def game_facts(game: Game) -> Json:
    """Facts about a game for the page; None if unknown."""
    tree = game.tree if game.fits_tree else None
    infosets = sum(game.native.num_infosets) if game.native else None
    returns = tree.returns[:, tree.terminals] if tree else np.zeros((1, 1))
    rounding = 1e-9 * max(1.0, float(np.abs(returns).max()))
    return {
        "name": game.name,
        "num_players": game.num_players,
        "nodes": tree.num_nodes if tree else None,
        "infosets": len(tree.keys) if tree else infosets,
        "constant_sum": bool(np.ptp(returns.sum(axis=0)) <= rounding),
        "uniform_nash_conv": uniform_nash_conv(game) if game.is_exact else None,
    }


def _role(facts: Json, reference: Entry) -> str:
    """The name of the reference: CFR approaches equilibria of two-player constant-sum games."""
    kind = reference.name.partition(":")[0]
    if kind not in (*VARIANTS, "nash"):
        return "reference"
    zero_sum = facts["num_players"] == 2 and facts["constant_sum"]
    return "equilibrium" if zero_sum else f"average of {kind.upper()}"


def _measure(facts: Json, measure: Any) -> Json:
    """The measure of a policy; a lower bound is not called NashConv."""
    found: Json = {"interval": None, "gains": (), "values": (), "best_values": (), "verdict": ""}
    if measure is None:
        return found
    if isinstance(measure, Measure):
        names = ("nash_conv", "exploitability", "gains", "values", "best_values")
        words = verdict(measure.nash_conv, facts["uniform_nash_conv"])
        return found | {name: getattr(measure, name) for name in names} | {"verdict": words}
    return found | {
        "nash_conv_at_least": measure.nash_conv_at_least,
        "exploitability_at_least": measure.nash_conv_at_least / facts["num_players"],
        "interval": measure.interval,
        "gains": measure.gains,
    }


def _plain(values: Mapping[str, Any]) -> dict[str, str]:
    """Settings as they would be typed, without empty ones; measured numbers have six digits."""
    texts = {
        str(name): f"{x:.6g}" if isinstance(x, float) and len(str(x)) > 8 else str(x)
        for name, x in values.items()
    }
    return {name: text for name, text in texts.items() if text}


def _losses(game: Game, measure: Any) -> list[Json]:
    """The largest losses in words, where the measure is exact."""
    return [
        {
            "player": loss.player,
            "label": game.infoset_label(loss.infoset, loss.player),
            **dict(zip(Loss._fields[2:], loss[2:], strict=True)),
            "played": game.action_label(loss.infoset, loss.played, loss.player),
            "best": game.action_label(loss.infoset, loss.best, loss.player),
        }
        for loss in (measure.losses[:MAX_LOSSES] if isinstance(measure, Measure) else ())
    ]


def _tables(tree: Tree, table: npt.NDArray[np.float64]) -> Json:
    """The data of one policy that the explorer and the table show."""
    found = action_values(tree, table)
    order = np.argsort(-found.losses, kind="stable")
    names = ("values", "costs", "reach", "losses", "beliefs")
    return {
        "probabilities": _floats(table[tree.legal]),
        **{name: _floats(getattr(found, name)) for name in names},
        "ranking": _integers(order[found.losses[order] > NO_LOSS]),
    }


def _seats(tree: Tree, one: Entry, reference: Entry | None) -> list[Json]:
    """Values of others in each seat, in chips per hand, when all other seats play the policy."""
    seats: list[Json] = [{"best_response": x, "reference": None} for x in one.measure.best_values]
    for seat, found in enumerate(seats):
        if reference:
            tables = [one.policy.table] * tree.num_players
            tables[seat] = reference.policy.table
            found["reference"] = evaluate_policy(tree, joint_policy(tree, tables)).values[seat]
    return seats


def _tree(game: Game) -> Json:
    tree = game.tree
    children = np.diff(tree.first_child)
    chance = np.flatnonzero((tree.player == CHANCE) & (children > 0))
    outcomes = ranges(tree.first_child[chance], tree.first_child[chance + 1])
    outcome_labels = [label for node in chance.tolist() for label in game.chance_labels(node)]
    slot_labels = [game.action_label(*slot) for slot in tree.slots[:, [0, 3]].tolist()]
    labels = list(dict.fromkeys(outcome_labels + slot_labels))
    places = {label: place for place, label in enumerate(labels)}
    words = [game.infoset_label(infoset) for infoset in range(len(tree.keys))]
    quotes = [repr(" ".join(key.split())) for key in tree.keys]  # labels that say nothing else
    rows, index = np.unique(tree.returns[:, tree.terminals].T, axis=0, return_inverse=True)
    return {
        "children": _integers(children),
        "infoset": _integers(tree.infoset),
        "outcomes": {
            "action": _integers(tree.action[outcomes]),
            "probability": _floats(tree.chance_probability[outcomes]),
            "label": _integers([places[label] for label in outcome_labels]),
        },
        "returns": rows.tolist(),
        "return_index": _integers(index.reshape(-1)),
        "owner": _integers(tree.owner),
        "slots": _integers(np.diff(tree.first_slot)),
        "keys": list(tree.keys),
        "infoset_labels": None if all(map(str.__contains__, words, quotes)) else words,
        "slot_action": _integers(tree.slots[:, 3]),
        "slot_label": _integers([places[label] for label in slot_labels]),
        "labels": labels,
    }


def _floats(values: npt.ArrayLike) -> Json:
    """float32: seven digits are more than the page shows."""
    return _encoded(np.asarray(values, "<f4"))


def _integers(values: npt.ArrayLike) -> Json:
    """The smallest type that holds all values."""
    numbers = np.asarray(values, np.int64)
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    kind = next(k for k in _INTEGERS if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return _encoded(numbers.astype(np.dtype(kind).newbyteorder("<")))


def _encoded(array: npt.NDArray[Any]) -> Json:
    return {"dtype": array.dtype.name, "data": base64.b64encode(array.tobytes()).decode()}
