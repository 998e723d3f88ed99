import assert from "node:assert/strict";
import { test } from "node:test";
import { INFORMATION_STATES, informationState, legal } from "../../kuhn_bridge/web/engine.js";
import { bestActions, replies, variance } from "../../kuhn_bridge/web/values.js";

const near = (got, wanted) => assert.ok(Math.abs(got - wanted) < 1e-12, `${got}, not ${wanted}`);

/** A policy from how often it bets or calls at each information state. */
const rows = (bold) =>
  INFORMATION_STATES.map((decision) => {
    const p = bold(informationState(decision));
    return legal(decision)[1] ? [1 - p, p, 0] : [p, 0, 1 - p];
  });
const uniform = rows(() => 0.5);
const BOLD = {
  0: 1 / 6,
  2: 1 / 2,
  "1pb": 1 / 2,
  "2pb": 1,
  "0p": 1 / 3,
  "2p": 1,
  "1b": 1 / 3,
  "2b": 1,
};
const perfect = rows((name) => BOLD[name] ?? 0);

test("uniform play loses 1/2 and 5/12 to its best replies", () => {
  const { best, actionValues } = replies(uniform);
  near(best[0], 1 / 2);
  near(best[1], 5 / 12);
  assert.deepEqual(Object.keys(actionValues).sort(), INFORMATION_STATES.map(informationState).sort());
  assert.deepEqual(bestActions(actionValues["0b"]), [2]);
  assert.deepEqual(bestActions(actionValues["2b"]), [0]);
});

test("against perfect play the value is 1/18 for the second seat, and mixed moves tie", () => {
  const { best, actionValues } = replies(perfect);
  near(best[0], -1 / 18);
  near(best[1], 1 / 18);
  assert.deepEqual(bestActions(actionValues["0p"]), [0, 1]);
  assert.deepEqual(bestActions(actionValues["1pb"]), [0, 2]);
  assert.deepEqual(bestActions(actionValues["1p"]), [0]);
  near(actionValues["2p"][1] - actionValues["2p"][0], 3 / 11);
  near(actionValues["1p"][0] - actionValues["1p"][1], 3 / 8);
});

test("where the bot never lets one arrive, either move will do", () => {
  const { actionValues } = replies(rows(() => 0)); // never bets
  assert.deepEqual(actionValues["2b"], [0, null, 0]);
  assert.deepEqual(bestActions(actionValues["2b"]), [0, 2]);
});

test("a network's rounding is no preference", () => {
  assert.deepEqual(bestActions([0.5, 0.5 + 1e-8, null]), [0, 1]);
  assert.deepEqual(bestActions([0.5, 0.5 + 1e-4, null]), [1]);
});

test("the variance of a hand", () => {
  near(variance(rows(() => 0)), 1); // always a showdown for 1
  near(variance(rows((name) => Number(name.length === 1 || name.endsWith("b")))), 4); // always for 2
  // Between perfect players: 4 instead of 1 when a bet is called, in 11 of 54 hands.
  near(variance(perfect), 1 + 3 * (11 / 54) - (1 / 18) ** 2);
});
