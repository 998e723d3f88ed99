"""The JSON document that the page shows: everything in it is computed here, nothing on the page.

    format, version    "kuhn-bridge-report", 1
    mode               "report", or "play": the page then opens at the table
    made_by            versions of this package and of OpenSpiel
    game               name, players, nodes, infosets, constant_sum, uniform_nash_conv
    policies           one object per policy; the last may be the `reference`
    tree               the game and its labels, or null: then `without_tree` says why
    hands              the public tree of a poker endgame and its hands (`algorithms.reports.hands`)

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

import kuhn_bridge
from algorithms.compiled.nashconv import action_values, evaluate_policy
from algorithms.games import ExactGame, Game
from algorithms.nashconv import NO_LOSS, Loss, Measure, joint_policy
from algorithms.policies import Policy
from algorithms.reports.arrays import floats, integers
from algorithms.reports.hands import hands_document, hands_tables
from algorithms.reports.measure_report import uniform_nash_conv, verdict
from algorithms.self_play.curve import Curve
from algorithms.solvers import NAMES as SOLVER_NAMES
from algorithms.tree import CHANCE, Tree, ranges

MAX_NODES = 300_000  # of a game with an explorer: the page takes about 15 bytes per node
MAX_LOSSES = 500  # listed in words where there is no explorer
BOUNDS_EXPLAINED = (
    " At least: what trained best responses gain is a lower bound of NashConv, and a smaller bound "
    "does not show that a policy is better."
)
CURVE_COLUMNS = ("steps", "last", "average")

Mode: TypeAlias = Literal["report", "play"]
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedPolicy:
    """One policy of a report."""

    name: str
    policy: Policy
    measure: Any = None  # a `Measure`, a `LowerBound`, or None if the policy was not measured
    curve: Curve = ()
    notes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # settings, by heading


def game_document(
    game: Game,
    reported: Sequence[ReportedPolicy],
    reference: ReportedPolicy | None = None,
    *,
    mode: Mode = "report",
) -> Json:
    """The document of policies of a game, with its tree up to `MAX_NODES` nodes.

    `reference` is the policy that the others are compared with, if any, e.g. an equilibrium.
    """
    facts = game_facts(game)
    nodes = facts["nodes"]
    tree = None
    if nodes is not None and nodes <= MAX_NODES:
        tree = game.tree
    policies = []
    for one in reported:
        role = _role(facts, one) if one is reference else None
        policies.append(
            {
                "name": one.name,
                "role": role,
                **_measure(facts, one.measure),
                "curve": _curve(one.curve),
                "notes": {heading: _as_typed(values) for heading, values in one.notes.items()},
                "losses": [] if tree else _losses(game, one.measure),
                "tables": _tables(tree, one.policy.table) if tree else None,
                "seats": _seats(tree, one, reference) if tree else _best_responses(one),
                "hands": None if tree else hands_tables(game, one.policy),
            }
        )
    without_tree = ""
    hands = None if tree else hands_document(game)
    if not tree:
        size = "does not fit a tree" if nodes is None else f"has {nodes:,} nodes"
        limit = f"the explorer and the table are left out above {MAX_NODES:,} nodes."
        without_tree = f"{game.name} {size}: {limit}"
        if hands:
            without_tree = ""
        if any(policy["interval"] for policy in policies):
            without_tree += BOUNDS_EXPLAINED
    return {
        "format": "kuhn-bridge-report",
        "version": 1,
        "mode": mode,
        "made_by": _versions(),
        "game": facts,
        "policies": policies,
        "tree": _tree(game) if tree else None,
        "hands": hands,
        "without_tree": without_tree,
    }


def _versions() -> dict[str, str]:
    versions = {"kuhn-bridge": kuhn_bridge.__version__}
    # There is none if OpenSpiel was built from source and is found by PYTHONPATH.
    for distribution in metadata.distributions(name="open_spiel"):
        versions["open_spiel"] = distribution.version
    return versions


def game_facts(game: Game) -> Json:
    """Facts about a game for the page; None if unknown."""
    size = game.size
    return {
        "name": game.name,
        "num_players": game.num_players,
        "nodes": size.nodes,
        "infosets": size.infosets,
        "constant_sum": size.constant_sum,
        "uniform_nash_conv": uniform_nash_conv(game) if isinstance(game, ExactGame) else None,
    }


# ---------------------------------------------------------------------------------------------
# A policy
# ---------------------------------------------------------------------------------------------


def _role(facts: Json, reference: ReportedPolicy) -> str:
    """The name of the reference: CFR approaches equilibria of two-player constant-sum games."""
    kind = reference.name.partition(":")[0]
    if kind not in (*SOLVER_NAMES, "nash"):
        return "reference"
    if facts["num_players"] == 2 and facts["constant_sum"]:
        return "equilibrium"
    return f"average of {kind.upper()}"


def _measure(facts: Json, measure: Any) -> Json:
    """The measure of a policy; a lower bound is not called NashConv."""
    fields: Json = {"interval": None, "gains": (), "values": (), "best_values": (), "verdict": ""}
    if measure is None:
        return fields
    if isinstance(measure, Measure):
        for name in ("nash_conv", "exploitability", "gains", "values", "best_values"):
            fields[name] = getattr(measure, name)
        fields["verdict"] = verdict(measure.nash_conv, facts["uniform_nash_conv"])
        return fields
    fields["nash_conv_at_least"] = measure.nash_conv_at_least
    fields["exploitability_at_least"] = measure.nash_conv_at_least / facts["num_players"]
    fields["interval"] = measure.interval
    fields["gains"] = measure.gains
    return fields


def _curve(curve: Curve) -> Json | None:
    if not curve:
        return None
    return {column: [getattr(point, column) for point in curve] for column in CURVE_COLUMNS}


def _as_typed(values: Mapping[str, Any]) -> dict[str, str]:
    """Settings as they would be typed, without empty ones; measured numbers have six digits."""
    texts = {}
    for name, value in values.items():
        text = str(value)
        if isinstance(value, float) and len(text) > 8:
            text = f"{value:.6g}"
        if text:
            texts[str(name)] = text
    return texts


def _losses(game: Game, measure: Any) -> list[Json]:
    """The largest losses in words, where the measure is exact."""
    if not isinstance(measure, Measure):
        return []
    return [_loss(game, loss) for loss in measure.losses[:MAX_LOSSES]]


def _loss(game: Game, loss: Loss) -> Json:
    fields: Json = loss._asdict()
    del fields["infoset"]
    fields["label"] = game.infoset_label(loss.infoset, loss.player)
    fields["played"] = game.action_label(loss.infoset, loss.played, loss.player)
    fields["best"] = game.action_label(loss.infoset, loss.best, loss.player)
    return fields


def _tables(tree: Tree, table: npt.NDArray[np.float64]) -> Json:
    """The data of one policy that the explorer and the table show."""
    values = action_values(tree, table)
    largest_first = np.argsort(-values.losses, kind="stable")
    loses = values.losses[largest_first] > NO_LOSS
    return {
        "probabilities": floats(table[tree.legal]),
        "values": floats(values.values),
        "costs": floats(values.costs),
        "reach": floats(values.reach),
        "losses": floats(values.losses),
        "beliefs": floats(values.beliefs),
        "ranking": integers(largest_first[loses]),
    }


def _best_responses(one: ReportedPolicy) -> list[Json]:
    """`_seats` of a game without a tree, which has no reference."""
    if not isinstance(one.measure, Measure):
        return []
    return [{"best_response": value, "reference": None} for value in one.measure.best_values]


def _seats(tree: Tree, one: ReportedPolicy, reference: ReportedPolicy | None) -> list[Json]:
    """Values of others in each seat, in chips per hand, when all other seats play the policy."""
    seats: list[Json] = []
    for seat, best_value in enumerate(one.measure.best_values):
        of_reference = None
        if reference:
            tables = [one.policy.table] * tree.num_players
            tables[seat] = reference.policy.table
            of_reference = evaluate_policy(tree, joint_policy(tree, tables)).values[seat]
        seats.append({"best_response": best_value, "reference": of_reference})
    return seats


# ---------------------------------------------------------------------------------------------
# The tree
# ---------------------------------------------------------------------------------------------


def _tree(game: Game) -> Json:
    tree = game.tree
    num_children = np.diff(tree.first_child)  # (N,)
    chance_nodes = np.flatnonzero((tree.player == CHANCE) & (num_children > 0))
    # All children of chance nodes, in the order of the nodes.
    outcomes = ranges(tree.first_child[chance_nodes], tree.first_child[chance_nodes + 1])
    outcome_labels = []
    for node in chance_nodes.tolist():
        outcome_labels += game.chance_labels(node)
    slot_infosets = tree.choice_infoset.tolist()
    slot_actions = tree.choice_action.tolist()
    slot_labels = [
        game.action_label(infoset, action)
        for infoset, action in zip(slot_infosets, slot_actions, strict=True)
    ]
    labels = list(dict.fromkeys(outcome_labels + slot_labels))  # each once
    index_of = {label: index for index, label in enumerate(labels)}
    returns, return_index = np.unique(
        tree.returns[:, tree.terminals].T, axis=0, return_inverse=True
    )
    return {
        "children": integers(num_children),
        "infoset": integers(tree.infoset),
        "outcomes": {
            "action": integers(tree.action[outcomes]),
            "probability": floats(tree.chance_probability[outcomes]),
            "label": integers([index_of[label] for label in outcome_labels]),
        },
        "returns": returns.tolist(),
        "return_index": integers(return_index.reshape(-1)),
        "owner": integers(tree.owner),
        "slots": integers(np.diff(tree.first_choice)),
        "keys": list(tree.keys),
        "infoset_labels": _infoset_labels(game),
        "slot_action": integers(slot_actions),
        "slot_label": integers([index_of[label] for label in slot_labels]),
        "labels": labels,
    }


def _infoset_labels(game: Game) -> list[str] | None:
    """The words of every information set; None if all of them only quote its string."""
    labels = [game.infoset_label(infoset) for infoset in range(len(game.tree.keys))]
    for label, key in zip(labels, game.tree.keys, strict=True):
        quoted = repr(" ".join(key.split()))
        if quoted not in label:
            return labels
    return None
