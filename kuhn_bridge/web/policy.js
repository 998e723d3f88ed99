// Where the bot's probabilities come from: a table, a JSON file, or an ONNX file.

import { ACTIONS, BETTING, INFORMATION_STATES, SEATS } from "./engine.js";
import { informationState, legal, observation } from "./engine.js";

/** @typedef {import("./engine.js").Decision} Decision */
/** As in policy JSON: "2pb" -> action -> probability.
 * @typedef {Record<string, Record<string, number>>} Table */

const TOLERANCE = 1e-6; // how far a row of a file may sum from 1, as in Python

/** @param {Table} table @returns {number[][]} 12 rows of 3, in action IDs */
export const tableRows = (table) =>
  INFORMATION_STATES.map((decision) =>
    ACTIONS.map((action) => table[informationState(decision)][action] ?? 0),
  );

/** A policy file, version 1, that `readTable` reads back.
 * @param {number[][]} rows 12 rows of 3 @returns {string} */
export function tableText(rows) {
  const named = (/** @type {Decision} */ decision, /** @type {number[]} */ row) =>
    Object.fromEntries(
      ACTIONS.flatMap((action, id) => (legal(decision)[id] ? [[action, row[id]]] : [])),
    );
  const policy = Object.fromEntries(
    INFORMATION_STATES.map((decision, i) => [informationState(decision), named(decision, rows[i])]),
  );
  return JSON.stringify({ format: "kuhn-bridge-policy", version: 1, policy });
}

/** A policy in the form of docs/onnx.md. A decision holds the own card and the public history, so
 * the model cannot see the other card; the answer is a row of 3, in action IDs, per decision.
 * @param {Uint8Array} bytes @param {any} ort the onnxruntime-web module */
export async function onnxPolicy(bytes, ort) {
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });

  /** @param {string} type @param {ArrayLike<number>} array @param {number[][]} rows */
  const matrix = (type, array, rows) => new ort.Tensor(type, array, [rows.length, rows[0].length]);

  /** @param {readonly Decision[]} decisions @returns {Promise<number[][]>} */
  async function probabilities(decisions) {
    const [observed, allowed] = [decisions.map(observation), decisions.map(legal)];
    const { probabilities: output } = await session.run(
      {
        observation: matrix("float32", Float32Array.from(observed.flat()), observed),
        action_mask: matrix("int8", Int8Array.from(allowed.flat()), allowed),
      },
      ["probabilities"],
    );
    return allowed.map((row, i) => checked([...output.data.slice(3 * i, 3 * i + 3)], row));
  }
  return { probabilities };
}

/** The table in a policy file, version 1 or 2, as docs/games.md describes them.
 * @param {string} text @returns {Table} */
export function readTable(text) {
  const data = parsed(text);
  if (data?.format !== "kuhn-bridge-policy")
    throw new RangeError('not a policy: it must be an object with "format": "kuhn-bridge-policy"');
  if (data.version === 1) return checkedTable(data.policy);
  if (data.version !== 2) throw new RangeError(`policy version ${data.version}; must be 1 or 2`);
  if (data.game !== "kuhn")
    throw new RangeError(`a policy of ${data.game}; this page plays Kuhn poker (kuhn)`);
  return checkedTable(fromPlayers(data.players));
}

/** @param {string} text @returns {any} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new RangeError("not a policy: the JSON is broken");
  }
}

/** Version 2 names actions by ID, one map per player. @param {any} players @returns {any} */
function fromPlayers(players) {
  const named = (/** @type {any} */ row) =>
    Object.fromEntries(Object.entries(row ?? {}).map(([id, p]) => [ACTIONS[Number(id)] ?? id, p]));
  return Object.fromEntries(
    SEATS.flatMap((seat) =>
      Object.entries(players?.[seat] ?? {}).map(([name, row]) => [name, named(row)]),
    ),
  );
}

/** @param {any} table @returns {Table} */
function checkedTable(table) {
  const known = INFORMATION_STATES.map(informationState);
  const missing = known.filter((name) => !Object.hasOwn(table ?? {}, name));
  if (missing.length) throw new RangeError(`an incomplete policy: it lacks ${missing.join(", ")}`);
  const unknown = Object.keys(table).filter((name) => !known.includes(name));
  if (unknown.length) throw new RangeError(`${unknown[0]} is not an information state of Kuhn poker`);
  for (const decision of INFORMATION_STATES) checkedRow(decision, table);
  return table;
}

/** @param {Decision} decision @param {any} table */
function checkedRow(decision, table) {
  const name = informationState(decision);
  const wanted = Object.keys(BETTING[decision.letters].after).map((id) => ACTIONS[Number(id)]);
  const row = table[name];
  const same =
    [...wanted].sort().join() ===
    Object.keys(row ?? {})
      .sort()
      .join();
  if (!same) throw new RangeError(`at ${name} the actions are ${wanted.join(" and ")}`);
  const shares = Object.values(row);
  const fine = shares.every((p) => typeof p === "number" && p >= 0 && p <= 1);
  if (!fine || !(Math.abs(shares.reduce((sum, p) => sum + p, 0) - 1) <= TOLERANCE))
    throw new RangeError(`at ${name} [${shares}] are not probabilities`);
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
