import assert from "node:assert/strict";
import { test } from "node:test";
import { INFORMATION_STATES, informationState } from "../../kuhn_bridge/web/engine.js";
import {
  onnxPolicy,
  readTable,
  sample,
  tableRows,
  tableText,
} from "../../kuhn_bridge/web/policy.js";

/** A runtime that returns `data` and stores its inputs in `feeds`. */
function runtime(data, feeds = {}) {
  const run = async (given) => (Object.assign(feeds, given), { probabilities: { data } });
  return {
    env: { wasm: {} },
    InferenceSession: { create: async () => ({ run }) },
    Tensor: class {
      constructor(type, values, dims) {
        Object.assign(this, { type, values, dims });
      }
    },
  };
}

test("a model gets the inputs of its contract", async () => {
  const feeds = {};
  const policy = await onnxPolicy(new Uint8Array(), runtime([0.5, 0, 0.5], feeds));
  assert.deepEqual(await policy.probabilities([{ card: 2, letters: "pb" }]), [[0.5, 0, 0.5]]);
  assert.deepEqual(feeds.observation.dims, [1, 10]);
  assert.deepEqual([...feeds.observation.values], [0, 0, 1, 0, 0, 0, 1, 0, 1, 0]);
  assert.deepEqual([feeds.action_mask.type, ...feeds.action_mask.values], ["int8", 1, 0, 1]);
});

for (const row of [
  [0.5, 0.5, 0],
  [NaN, 0, 1],
  [0.5, 0, 0.4],
  [0.5, 0, 0.4999],
  [-0.5, 0, 1.5],
])
  test(`a model that gives [${row}] facing a bet is refused`, async () => {
    const policy = await onnxPolicy(new Uint8Array(), runtime(row));
    await assert.rejects(policy.probabilities([{ card: 2, letters: "b" }]), /not probabilities/);
  });

test("sampling inverts the row", () => {
  assert.deepEqual(
    [0, 0.24, 0.25, 0.99].map((u) => sample([0.25, 0, 0.75], u)),
    [0, 0, 2, 2],
  );
  assert.equal(sample([0.1, 0.2, 0.7], 1 - 2 ** -53), 2);
  assert.equal(sample([1, 0, 0], 1 - 2 ** -53), 0);
});

test("the 12 information states come in the core's order", () => {
  const names = "0 1 2 0p 1p 2p 0b 1b 2b 0pb 1pb 2pb";
  assert.equal(INFORMATION_STATES.map(informationState).join(" "), names);
});

const table = Object.fromEntries(
  INFORMATION_STATES.map((decision) => [
    informationState(decision),
    decision.letters.endsWith("b")
      ? { CHECK_OR_CALL: 0.25, FOLD: 0.75 }
      : { CHECK_OR_CALL: 0.5, BET: 0.5 },
  ]),
);
const file = (changes) =>
  JSON.stringify({ format: "kuhn-bridge-policy", version: 1, policy: table, ...changes });
const byId = (names) =>
  Object.fromEntries(
    names.map((name) => [name, name.endsWith("b") ? { 0: 0.25, 2: 0.75 } : { 0: 0.5, 1: 0.5 }]),
  );
const players = [
  byId(["0", "1", "2", "0pb", "1pb", "2pb"]),
  byId(["0p", "1p", "2p", "0b", "1b", "2b"]),
];
const second = { version: 2, game: "kuhn", policy: undefined, players };

test("a table gives its rows in action IDs, and rows give a file with that table", () => {
  const rows = tableRows(table);
  assert.equal(rows.length, 12);
  assert.deepEqual([rows[0], rows[6]], [[0.5, 0.5, 0], [0.25, 0, 0.75]]);
  assert.deepEqual(readTable(tableText(rows)), table);
});

test("both versions of a policy file are read", () => {
  assert.deepEqual(readTable(file({})), table);
  assert.deepEqual(readTable(file(second)), table);
});

const without = (name) => ({ ...table, [name]: undefined });
const spoiled = (row) => ({ policy: { ...table, "2pb": row } });
for (const [what, changes, said] of [
  ["another format", { format: "x" }, /not a policy/],
  ["another version", { version: 3 }, /version 3/],
  ["another game", { version: 2, game: "leduc_poker" }, /leduc_poker.*Kuhn/],
  ["no table", { policy: null }, /lacks 0, 1/],
  ["a list", { policy: [] }, /lacks 0, 1/],
  ["a missing row", { policy: without("2pb") }, /lacks 2pb/],
  ["an unknown row", { policy: { ...table, "3pb": {} } }, /3pb is not an information state/],
  ["a missing player", { ...second, players: players.slice(1) }, /lacks 0, 1/],
  ["a missing action", spoiled({ FOLD: 1 }), /2pb the actions are CHECK_OR_CALL and FOLD/],
  ["an illegal action", spoiled({ CHECK_OR_CALL: 0.5, BET: 0.5 }), /the actions are/],
  ["no row", spoiled(null), /the actions are/],
  ["a sum below 1", spoiled({ CHECK_OR_CALL: 0.5, FOLD: 0.4 }), /not probabilities/],
  ["a negative number", spoiled({ CHECK_OR_CALL: -0.5, FOLD: 1.5 }), /not probabilities/],
  ["words", spoiled({ CHECK_OR_CALL: "0.5", FOLD: "0.5" }), /not probabilities/],
])
  test(`a policy file with ${what} is refused`, () =>
    assert.throws(() => readTable(file(changes)), said));

test("a row may sum to 1 up to a millionth, as in Python", () => {
  const off = (by) => file(spoiled({ CHECK_OR_CALL: 0.5, FOLD: 0.5 - by }));
  assert.doesNotThrow(() => readTable(off(9e-7)));
  assert.throws(() => readTable(off(1.1e-6)), /not probabilities/);
});

test("broken JSON and JSON that is no object are refused", () => {
  for (const text of ["{", "", "null", "3", '"x"'])
    assert.throws(() => readTable(text), /not a policy/);
});
