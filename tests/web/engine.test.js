// engine.js on its own: what the vectors cannot say. The vectors themselves are in check.js.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { compare } from "../../kuhn_bridge/web/check.js";
import * as engine from "../../kuhn_bridge/web/engine.js";

const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));
const dealt = (...cards) => cards.reduce(engine.deal, engine.newHand());

test("the engine agrees with the core at all 58 nodes and for both agents", () => {
  const { nodes, compared, mismatches } = compare(vectors);
  assert.deepEqual(mismatches, []);
  assert.equal(nodes, 58);
  assert.equal(compared, 58 * 9);
});

test("a planted error in any field of any node is seen", () => {
  for (const index of vectors.nodes.keys())
    for (const field of Object.keys(vectors.nodes[0])) {
      const planted = structuredClone(vectors);
      planted.nodes[index][field] = "planted";
      assert.equal(compare(planted).mismatches.length > 0, true, `${index} ${field}`);
    }
});

test("a whole hand: check, bet, call pays 2 to the king", () => {
  let hand = dealt(2, 0);
  for (const action of [engine.CHECK_OR_CALL, engine.BET, engine.CHECK_OR_CALL])
    hand = engine.act(hand, action);
  assert.deepEqual(engine.betting(hand).words, ["check", "bet", "call"]);
  assert.deepEqual(engine.returns(hand), [2, -2]);
  assert.equal(engine.pot(hand), 4);
});

test("an action that the mask forbids is refused and changes nothing", () => {
  for (const node of vectors.nodes.filter(({ cards }) => cards.length === 2))
    for (const action of [0, 1, 2, 3, -1, 1.5, "0", null, undefined, "constructor"]) {
      if (action in node.after && Number.isInteger(action)) continue;
      const state = Object.freeze({ cards: node.cards, letters: node.letters });
      assert.throws(() => engine.act(state, action), /illegal action/);
    }
});

test("no card is dealt twice, and only two are dealt", () => {
  assert.throws(() => dealt(1, 1), /cannot be dealt/);
  assert.throws(() => dealt(0, 1, 2), /cannot be dealt/);
  assert.throws(() => dealt(3), /cannot be dealt/);
});

test("a state cannot be changed", () => {
  const state = dealt(0, 1);
  assert.throws(() => (state.letters = "b"), TypeError);
  assert.throws(() => state.cards.push(2), TypeError);
});

test("what a player knows to decide holds no other card", () => {
  assert.deepEqual(engine.decisionOf(dealt(0, 1)), { card: 0, letters: "" });
  assert.deepEqual(engine.decisionOf(engine.act(dealt(0, 1), 1)), { card: 1, letters: "b" });
  assert.throws(() => engine.decisionOf(engine.newHand()), /nobody decides/);
});
