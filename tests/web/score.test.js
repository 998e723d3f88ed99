import assert from "node:assert/strict";
import { test } from "node:test";
import { costText, often, review, score, word } from "../../kuhn_bridge/web/score.js";
import { chips, signed } from "../../kuhn_bridge/web/text.js";

const THIRD = 1 / 3;

test("a score is total, mean, their errors, the fair share and what was given away", () => {
  const won = [1, -2, 1, 2];
  const results = won.map((chips, i) => ({ seat: i < 3 ? 0 : 1, chips, cost: i / 4 }));
  const { n, total, mean, error, totalError, expected, given } = score(results, -1 / 18);
  assert.equal(given, 1.5);
  assert.deepEqual([n, total, mean], [4, 2, 0.5]);
  const variance = (0.25 + 6.25 + 0.25 + 2.25) / 3;
  assert.ok(Math.abs(error - Math.sqrt(variance / 4)) < 1e-12);
  assert.ok(Math.abs(totalError - Math.sqrt(variance * 4)) < 1e-12);
  assert.ok(Math.abs(expected + 2 / 18) < 1e-12);
});

test("one hand has no standard error", () => {
  const { total, error, totalError } = score([{ seat: 1, chips: -1 }], -1 / 18);
  assert.deepEqual([total, error, totalError], [-1, null, null]);
  assert.deepEqual([score([], -1 / 18).mean, score([], -1 / 18).expected], [0, 0]);
});

test("a review says what equilibrium does and judges the move", () => {
  const bands = {
    0: { CHECK_OR_CALL: [2 * THIRD, 1], BET: [0, THIRD] },
    "0b": { CHECK_OR_CALL: [0, 0], FOLD: [1, 1] },
    "1pb": { CHECK_OR_CALL: [THIRD, 2 * THIRD], FOLD: [THIRD, 2 * THIRD] },
    2: { CHECK_OR_CALL: [0, 1], BET: [0, 1] },
  };
  assert.deepEqual(review({ card: 0, letters: "" }, 1, bands), {
    how: "J, first to act: checks 67–\u2060100%, bets 0–\u206033%",
    judgement: "You bet, as it sometimes does.",
    verdict: "sometimes",
  });
  assert.deepEqual(review({ card: 0, letters: "" }, 0, bands), {
    how: "J, first to act: checks 67–\u2060100%, bets 0–\u206033%",
    judgement: "You checked, as it mostly does.",
    verdict: "mostly",
  });
  assert.equal(
    review({ card: 1, letters: "pb" }, 2, bands).how,
    "Q, after check, bet: calls 33–\u206067%, folds 33–\u206067%",
  );
  assert.equal(
    review({ card: 2, letters: "" }, 1, bands).how,
    "K, first to act: any mix of check and bet",
  );
  assert.deepEqual(review({ card: 0, letters: "b" }, 0, bands), {
    how: "J, facing a bet: always folds",
    judgement: "You called, which it never does.",
    verdict: "never",
  });
  const { judgement, verdict } = review({ card: 0, letters: "b" }, 2, bands);
  assert.deepEqual([judgement, verdict], ["You folded, as it always does.", "always"]);
});

test("what moves cost, in chips", () => {
  const costs = {
    1: { CHECK_OR_CALL: 0, BET: 1 / 6 },
    "1pb": { CHECK_OR_CALL: 1, FOLD: 0 },
    "2b": { CHECK_OR_CALL: 0, FOLD: 3 },
  };
  const made = (letters, action, card = 1) => ({ decision: { card, letters }, action });
  assert.equal(costText([], costs), "");
  assert.equal(costText([made("", 1)], costs), "your bet cost 0.17 chips");
  assert.equal(costText([made("b", 2, 2)], costs), "your fold cost 3 chips");
  assert.equal(
    costText([made("", 0), made("pb", 0)], costs),
    "your check cost nothing, your call 1 chip",
  );
  assert.deepEqual([0, 0.004, 0.27, 1, 2.5].map(chips), [
    "nothing",
    "nothing",
    "0.27 chips",
    "1 chip",
    "2.5 chips",
  ]);
});

test("numbers and moves as people write them", () => {
  assert.deepEqual(
    [3, -2, 0].map((n) => signed(n)),
    ["+3", "−2", "0"],
  );
  assert.deepEqual(
    [-0.004, -0.056].map((x) => signed(x, 2)),
    ["0.00", "−0.06"],
  );
  assert.deepEqual(
    [
      [0, 0],
      [1, 1],
      [THIRD, THIRD],
      [0, 1],
    ].map(often),
    ["0%", "always", "33%", "0–\u2060100%"],
  );
  assert.deepEqual(
    [word("", 0), word("b", 0), word("pb", 2), word("p", 1)],
    ["check", "call", "fold", "bet"],
  );
});
