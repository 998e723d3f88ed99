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

and the `tables` of a policy have, as `algorithms.exact.values` defines them,
`probabilities`, `values` and `costs` (S,), `reach` and `losses` (I,), `beliefs` (D,), and
`ranking`: the information sets that lose chips, the largest loss first. The `seats` of a policy
have, for each player, the values of a best response and of the reference when all others play the
policy.
"""

import base64
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

import kuhn_bridge
from algorithms.exact.solving import NAMES as VARIANTS
from algorithms.exact.tree import CHANCE, Tree, ranges
from algorithms.exact.values import (
    NO_LOSS,
    Loss,
    Measure,
    action_values,
    evaluate_policy,
    joint_policy,
)
from algorithms.games import Game
from algorithms.policies.report import uniform_nash_conv, verdict
from algorithms.reporting.entries import Entry

FORMAT, VERSION = "kuhn-bridge-report", 1
MAX_NODES = 300_000  # of a game with an explorer: the page takes about 15 bytes per node
MAX_LOSSES = 500  # listed in words where there is no explorer
BOUNDS = (
    "At least: what trained best responses gain is a lower bound of NashConv, and a smaller bound "
    "does not show that a policy is better."
)
_INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, np.int32)

Mode: TypeAlias = Literal["report", "play"]
Json: TypeAlias = dict[str, Any]


def game_document(
    game: Game, entries: Sequence[Entry], reference: Entry | None = None, *, mode: Mode = "report"
) -> Json:
    """The document of policies of a game, with its tree up to `MAX_NODES` nodes.

    Args:
        game: game of all entries.
        entries: policies in the order in which they are shown.
        reference: entry that the others are compared with, if any, e.g. an equilibrium.
        mode: whether the page opens as a report or at the table.
    """
    facts = game_facts(game)
    has_tree = facts["nodes"] is not None and facts["nodes"] <= MAX_NODES
    policies = [
        {
            "name": one.name,
            "role": _role(facts, one) if one is reference else None,
            **_measure(facts, one),
            "curve": _curve(one),
            "notes": {heading: _plain(values) for heading, values in one.notes.items()},
            "losses": [] if has_tree else _losses(game, one),
            "tables": _tables(game.tree, one) if has_tree else None,
            "seats": _seats(game.tree, one, reference) if has_tree else [],
        }
        for one in entries
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "mode": mode,
        "made_by": _versions(),
        "game": facts,
        "policies": policies,
        "tree": _tree(game) if has_tree else None,
        "without_tree": "" if has_tree else _why_without_tree(facts, policies),
    }


def game_facts(game: Game) -> Json:
    """Facts about a game for the page; None if unknown."""
    tree = game.tree if game.fits_tree else None
    infosets = sum(game.native.num_infosets) if game.native else None
    return {
        "name": game.name,
        "num_players": game.num_players,
        "nodes": tree.num_nodes if tree else None,
        "infosets": len(tree.keys) if tree else infosets,
        "constant_sum": tree is None or _is_constant_sum(tree),
        "uniform_nash_conv": uniform_nash_conv(game) if game.is_exact else None,
    }


def _is_constant_sum(tree: Tree) -> bool:
    sums = tree.returns[:, tree.terminals].sum(axis=0)
    return bool(np.ptp(sums) <= 1e-9 * max(1.0, float(np.abs(tree.returns).max())))


def _why_without_tree(facts: Json, policies: Sequence[Json]) -> str:
    size = "does not fit a tree" if facts["nodes"] is None else f"has {facts['nodes']:,} nodes"
    limit = f"the explorer and the table are left out above {MAX_NODES:,} nodes."
    bounds = f" {BOUNDS}" if any(policy["interval"] for policy in policies) else ""
    return f"{facts['name']} {size}: {limit}{bounds}"


def _versions() -> dict[str, str]:
    """The versions of kuhn-bridge, and of OpenSpiel where it is installed."""
    found = {"kuhn-bridge": kuhn_bridge.__version__}
    try:
        return found | {"open_spiel": metadata.version("open_spiel")}
    except metadata.PackageNotFoundError:
        return found


def _role(facts: Json, reference: Entry) -> str:
    """The name of the reference: CFR approaches equilibria of two-player constant-sum games."""
    kind = reference.name.partition(":")[0]
    if kind not in (*VARIANTS, "nash"):
        return "reference"
    zero_sum = facts["num_players"] == 2 and facts["constant_sum"]
    return "equilibrium" if zero_sum else f"average of {kind.upper()}"


def _measure(facts: Json, one: Entry) -> Json:
    """The measure of a policy; a lower bound is not called NashConv."""
    found: Json = {"interval": None, "gains": (), "values": (), "best_values": (), "verdict": ""}
    measure = one.measure
    if measure is None:
        return found
    if isinstance(measure, Measure):
        return found | {
            "nash_conv": measure.nash_conv,
            "exploitability": measure.exploitability,
            "gains": measure.gains,
            "values": measure.values,
            "best_values": measure.best_values,
            "verdict": verdict(measure.nash_conv, facts["uniform_nash_conv"]),
        }
    return found | {
        "nash_conv_at_least": measure.nash_conv_at_least,
        "exploitability_at_least": measure.nash_conv_at_least / facts["num_players"],
        "interval": measure.interval,
        "gains": measure.gains,
    }


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
    """A setting as it would be typed; measured numbers have six digits."""
    text = str(value)
    return f"{value:.6g}" if isinstance(value, float) and len(text) > 8 else text


def _losses(game: Game, one: Entry) -> list[Json]:
    """The largest losses in words, where the measure is exact."""
    losses = one.measure.losses[:MAX_LOSSES] if isinstance(one.measure, Measure) else ()
    return [_loss(game, loss) for loss in losses]


def _loss(game: Game, loss: Loss) -> Json:
    return {
        "player": loss.player,
        "label": game.infoset_label(loss.infoset, loss.player),
        "reach": loss.reach,
        "played": game.action_label(loss.infoset, loss.played, loss.player),
        "probability": loss.probability,
        "best": game.action_label(loss.infoset, loss.best, loss.player),
        "lost": loss.lost,
    }


def _tables(tree: Tree, one: Entry) -> Json:
    """The data of one policy that the explorer and the table show."""
    table = one.policy.table
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


def _seats(tree: Tree, one: Entry, reference: Entry | None) -> list[Json]:
    """Values of others in each seat, in chips per hand, when all other seats play the policy."""
    assert isinstance(one.measure, Measure)  # noqa: S101  # a game with a tree has an exact measure
    return [
        {
            "best_response": best,
            "reference": _value(tree, one, reference, seat) if reference else None,
        }
        for seat, best in enumerate(one.measure.best_values)
    ]


def _value(tree: Tree, one: Entry, guest: Entry, seat: int) -> float:
    players = range(tree.num_players)
    tables = [(guest if player == seat else one).policy.table for player in players]
    return evaluate_policy(tree, joint_policy(tree, tables)).values[seat]


def _tree(game: Game) -> Json:
    tree = game.tree
    children = np.diff(tree.first_child)
    chance = np.flatnonzero((tree.player == CHANCE) & (children > 0))
    outcomes = ranges(tree.first_child[chance], tree.first_child[chance + 1])
    outcome_labels = [label for node in chance.tolist() for label in game.chance_labels(node)]
    slot_labels = [game.action_label(*slot) for slot in tree.slots[:, [0, 3]].tolist()]
    labels = list(dict.fromkeys(outcome_labels + slot_labels))
    places = {label: place for place, label in enumerate(labels)}
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
        "infoset_labels": _infoset_labels(game),
        "slot_action": _integers(tree.slots[:, 3]),
        "slot_label": _integers([places[label] for label in slot_labels]),
        "labels": labels,
    }


def _infoset_labels(game: Game) -> list[str] | None:
    """Names in words; None where they only quote the information state strings."""
    tree = game.tree
    found = [game.infoset_label(infoset) for infoset in range(len(tree.keys))]
    quotes = (repr(" ".join(key.split())) for key in tree.keys)
    same = all(quote in label for quote, label in zip(quotes, found, strict=True))
    return None if same else found


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
