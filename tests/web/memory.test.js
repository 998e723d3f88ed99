import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import * as memory from "../../kuhn_bridge/web/memory.js";

/** The browser's storage, as far as it is used. */
function storage() {
  const held = new Map();
  return {
    held,
    getItem: (key) => held.get(key) ?? null,
    setItem: (key, value) => held.set(key, value),
  };
}

beforeEach(() => {
  globalThis.localStorage = storage();
  globalThis.sessionStorage = storage();
});
const result = { seat: 1, chips: -2, cost: 3 / 8 };

test("hands are kept per opponent, in order", () => {
  assert.deepEqual(memory.hands("one"), []);
  memory.addHand("one", { seat: 0, chips: 1, cost: 0 });
  const all = memory.addHand("one", result);
  assert.deepEqual(all, [{ seat: 0, chips: 1, cost: 0 }, result]);
  assert.deepEqual(memory.hands("one"), all);
  assert.deepEqual(memory.hands("two"), []);
});

test("a hand of another window is not lost", () => {
  memory.addHand("one", result);
  const key = [...localStorage.held.keys()][0];
  localStorage.setItem(key, "[[0,1,0],[0,1,0]]");
  assert.equal(memory.addHand("one", result).length, 3);
});

test("one opponent's hands are forgotten", () => {
  memory.addHand("one", result);
  memory.addHand("two", result);
  memory.forgetHands("one");
  assert.deepEqual(memory.hands("one"), []);
  assert.deepEqual(memory.hands("two"), [result]);
});

for (const text of ["{", "null", "3", "[3]", "[[0,1]]", "[[2,1,0]]", "[[0,0,0]]", "[[0,3,0]]"])
  test(`stored hands ${text} are not ours`, () => {
    memory.addHand("one", result);
    localStorage.setItem([...localStorage.held.keys()][0], text);
    assert.deepEqual(memory.hands("one"), []);
  });
for (const cost of ["-1", '"1"', "null", "1e999"])
  test(`a stored cost of ${cost} is not ours`, () => {
    memory.addHand("one", result);
    localStorage.setItem([...localStorage.held.keys()][0], `[[0,1,${cost}]]`);
    assert.deepEqual(memory.hands("one"), []);
  });

test("a choice holds for the opponent it was chosen over", () => {
  assert.equal(memory.chosen("given"), null);
  memory.rememberChoice("given", "other");
  assert.equal(memory.chosen("given"), "other");
  assert.equal(memory.chosen("model"), null);
  assert.equal(localStorage.held.size, 0); // another visit starts with the opponent it names
});

const mine = (name) => ({ name, kind: "table", policy: "{}" });

test("the last eight files are kept, and what is not one is left out", () => {
  assert.deepEqual(memory.files(), []);
  for (const name of "abcdefghij") memory.rememberFile(mine(name));
  assert.deepEqual(memory.files(), [..."cdefghij"].map(mine));
  for (const [stored, kept] of [
    ["{", []],
    ["3", []],
    ['[null, 3, {"name": "x"}]', []],
    [JSON.stringify([{ ...mine("x"), kind: "zip" }, mine("y")]), [mine("y")]],
  ]) {
    localStorage.setItem("kuhn-bridge:files", stored);
    assert.deepEqual(memory.files(), kept);
  }
});

test("the rules are shown once", () => {
  assert.equal(memory.sawRules(), false);
  memory.rememberRules();
  assert.equal(memory.sawRules(), true);
});

test("where storage is full, this visit still counts", () => {
  memory.addHand("full", result);
  localStorage.setItem = () => {
    throw new Error("full");
  };
  memory.addHand("full", result);
  assert.equal(memory.addHand("full", result).length, 3);
  globalThis.localStorage = storage(); // room again: what was kept is written
  assert.equal(memory.addHand("full", result).length, 4);
  assert.equal(memory.addHand("full", result).length, 5);
  assert.equal(JSON.parse([...localStorage.held.values()][0]).length, 5);
});
