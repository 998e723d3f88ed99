// Where the bot's probabilities come from: a table of 12 rows, or an ONNX file that runs here.

import { ACTIONS, informationState, legal, observation } from "./engine.js";

/** @typedef {import("./engine.js").Decision} Decision */
/**
 * One interface for both kinds. `probabilities` gives a row of 3, in action IDs, per decision;
 * a decision holds the own card and the public history, so no policy can see the other card.
 * @typedef {object} Policy
 * @property {"table" | "onnx"} kind
 * @property {(decisions: readonly Decision[]) => Promise<number[][]>} probabilities
 */

/** @param {Record<string, Record<string, number>>} rows as in policy JSON: "2pb" -> action -> p
 * @returns {Policy} */
export function tablePolicy(rows) {
  const row = (decision) => {
    const named = rows[informationState(decision)];
    return ACTIONS.map((action) => named[action] ?? 0);
  };
  return { kind: "table", probabilities: async (decisions) => decisions.map(row) };
}

/** A policy in the form of docs/onnx.md.
 * @param {Uint8Array} bytes @param {any} ort the onnxruntime-web module @returns {Promise<Policy>} */
export async function onnxPolicy(bytes, ort) {
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
  const matrix = (type, array, rows) => new ort.Tensor(type, array, [rows.length, rows[0].length]);

  async function probabilities(decisions) {
    const [seen, allowed] = [decisions.map(observation), decisions.map(legal)];
    const { probabilities: output } = await session.run(
      {
        observation: matrix("float32", Float32Array.from(seen.flat()), seen),
        action_mask: matrix("int8", Int8Array.from(allowed.flat()), allowed),
      },
      ["probabilities"],
    );
    return allowed.map((row, i) => checked([...output.data.slice(3 * i, 3 * i + 3)], row));
  }
  return { kind: "onnx", probabilities };
}

/** @param {number[]} row @param {number} random uniform in [0, 1) @returns {number} an action ID */
export function sample(row, random = Math.random()) {
  let left = random * row.reduce((sum, p) => sum + p, 0);
  const action = row.findIndex((p) => (left -= p) < 0);
  return action < 0 ? row.findLastIndex((p) => p > 0) : action;
}

/** @param {number[]} row @param {number[]} allowed @returns {number[]} */
function checked(row, allowed) {
  const sum = row.reduce((total, p) => total + p, 0);
  if (!(Math.abs(sum - 1) < 1e-5) || row.some((p, i) => !(p >= 0) || (p > 0 && !allowed[i])))
    throw new RangeError(`the model gives [${row}], which are not probabilities of legal actions`);
  return row;
}
