import assert from "node:assert/strict";
import { test } from "node:test";
import { INFORMATION_STATES, informationState } from "../../kuhn_bridge/web/engine.js";
import { onnxPolicy, sample, tablePolicy } from "../../kuhn_bridge/web/policy.js";

/** A runtime that gives whatever it is told to, and keeps what it was asked. */
function runtime(data, asked = {}) {
  const run = async (feeds) => (Object.assign(asked, feeds), { probabilities: { data } });
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

test("a table gives its rows in action IDs", async () => {
  const policy = tablePolicy({ "0b": { CHECK_OR_CALL: 0.25, FOLD: 0.75 } });
  assert.deepEqual(await policy.probabilities([{ card: 0, letters: "b" }]), [[0.25, 0, 0.75]]);
});

test("a model is asked as its contract says", async () => {
  const asked = {};
  const policy = await onnxPolicy(new Uint8Array(), runtime([0.5, 0, 0.5], asked));
  assert.deepEqual(await policy.probabilities([{ card: 2, letters: "pb" }]), [[0.5, 0, 0.5]]);
  assert.deepEqual(asked.observation.dims, [1, 10]);
  assert.deepEqual([...asked.observation.values], [0, 0, 1, 0, 0, 0, 1, 0, 1, 0]);
  assert.deepEqual([asked.action_mask.type, ...asked.action_mask.values], ["int8", 1, 0, 1]);
});

for (const row of [
  [0.5, 0.5, 0],
  [NaN, 0, 1],
  [0.5, 0, 0.4],
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
