"""The environments that learners train on, against the PettingZoo face they are made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.learning.selfplay import NOBODY, SelfPlayEnv, SelfPlayVecEnv, Tables, kuhn_tables
from kuhn_bridge import kuhn_v0
from kuhn_bridge.bridge import letters_to_actions
from kuhn_bridge.policy import LEGAL
from kuhn_bridge.rules import AGENTS, BETTING, DEALS, DECISIONS, Action, Card
from parity.registry import Settings, check
from parity.sides import hand
from parity.tally import Tally

GROUP = "faces"
Plan: TypeAlias = Mapping[str, Action]


@check("tables", GROUP, "the look-up tables of the fast environments, node by node")
def check_tables(tally: Tally, settings: Settings) -> None:
    """Actor, sight, mask and rewards of every node, from a walk of the AEC face of its own."""
    tally.theirs = "the AEC face"
    tables, env = kuhn_tables(), kuhn_v0.env()
    for root, deal in zip(tables.roots, DEALS, strict=True):
        for letters in BETTING:
            node = root
            env.reset(options={"cards": deal})
            for action in letters_to_actions(letters):
                node = tables.after[node, action]
                env.step(action)
            _compare_node(tables, node, env, hand(deal, letters), tally)


def _compare_node(tables: Tables, node: int, env: Any, where: str, tally: Tally) -> None:
    over = all(env.terminations.values())
    actor = NOBODY if over else AGENTS.index(env.agent_selection)
    tally.same(where, "has {} to act", int(tables.actor[node]), actor)
    tally.same(
        where, "pays {}", tables.rewards[node].tolist(), list(map(float, env.rewards.values()))
    )
    for seat, agent in enumerate(AGENTS):
        if over or seat == actor:
            row = tables.seen[node, seat]
            seen = env.observe(agent)
            tally.same(
                where, "shows {}", tables.observations[row].tolist(), seen["observation"].tolist()
            )
            if seat == actor:
                legal = (tables.after[node] != NOBODY).tolist()
                for mask in (legal, tables.masks[row].tolist()):
                    tally.same(where, "allows {}", mask, seen["action_mask"].astype(bool).tolist())


@check(
    "selfplay", GROUP, "the vectorised self-play environment against the plain one, hand by hand"
)
def check_selfplay(tally: Tally, settings: Settings) -> None:
    """All deals and seats under every plan of the learner and of the other seat."""
    tally.theirs = "the plain one"
    tables = kuhn_tables()
    plain = [SelfPlayEnv(tables=tables, first=case) for case in range(len(tables.cases))]
    for mine, theirs in product(plans(), plans()):
        vector = SelfPlayVecEnv(len(plain), tables=tables)
        vector.set_opponent(as_policy(theirs))
        seen: Any = vector.reset()
        for env in plain:
            env.set_opponent(as_policy(theirs))
        starts = [env.reset(options={"case": case})[0] for case, env in enumerate(plain)]
        where = f"{_spelt(mine)} against {_spelt(theirs)}"
        for case, (mine_seen, right) in enumerate(zip(seen, starts, strict=True)):
            spot = f"{where}, {_case(tables, case)}"
            tally.same(spot, "shows {}", mine_seen.tolist(), right.tolist())
        running = np.ones(len(plain), bool)
        while running.any():
            masks = vector.env_method("action_masks")[0]
            actions = np.array([_planned(mine, row) for row in seen])
            seen, rewards, ended, infos = vector.step(actions)
            for case in np.flatnonzero(running).tolist():
                env, spot = plain[case], f"{where}, {_case(tables, case)}"
                tally.same(spot, "allows {}", masks[case].tolist(), env.action_masks().tolist())
                after, reward, over, _, _ = env.step(actions[case])
                last = infos[case]["terminal_observation"] if ended[case] else seen[case]
                tally.same(spot, "shows {}", last.tolist(), after.tolist())
                tally.same(spot, "pays {}", float(rewards[case]), reward)
                tally.same(spot, "is over: {}", bool(ended[case]), over)
            running &= ~ended


def plans() -> Iterator[Plan]:
    """Every way to choose one of the two legal actions at each of the four histories."""
    pairs = [tuple(BETTING[letters].after) for letters in DECISIONS]
    for chosen in product(*pairs):
        yield dict(zip(DECISIONS, chosen, strict=True))


def as_policy(plan: Plan) -> npt.NDArray[np.float64]:
    """The joint policy `(12, 3)` that follows a plan with every card."""
    table = np.zeros(LEGAL.shape)
    for row, (letters, _) in enumerate(product(DECISIONS, Card)):
        table[row, plan[letters]] = 1
    return table


def _planned(plan: Plan, observation: npt.NDArray[np.float32]) -> Action:
    """The planned action at an observation, whose bits 3..6 say which of the histories it is."""
    return plan[DECISIONS[int(observation[3:7].argmax())]]


def _spelt(plan: Plan) -> str:
    return "".join(BETTING[BETTING[at].after[move]].letters[-1] for at, move in plan.items())


def _case(tables: Tables, case: int) -> str:
    (card0, card1), seat = tables.cases[case]
    return f"{card0.name} against {card1.name} as {AGENTS[seat]}"
