// Who the person plays against: those the server names, and files that are dropped on the page.

import { INFORMATION_STATES } from "./engine.js";
import { onnxPolicy, readTable, tablePolicy } from "./policy.js";

/** `id` tells policies apart, whatever they are called; `note` says where the policy runs.
 * @typedef {object} Opponent
 * @property {string} name
 * @property {string} about
 * @property {string} id
 * @property {import("./policy.js").Policy} policy
 * @property {number[][]} rows what it plays at the 12 information states
 * @property {string} note
 */

const RUNTIME = "ort/ort.wasm.bundle.min.mjs";
const MISSING =
  "onnxruntime-web is missing " +
  "(run “npm install onnxruntime-web@1.30.0” in the folder you play from)";
const UNLIKE = "The page could not run this ONNX file (docs/onnx.md says what it needs)";
const LARGEST = 64 * 2 ** 20; // bytes

/** An opponent as the server describes it: an ONNX model runs here if it can, else its table plays.
 * @param {{name: string, about: string, policy: import("./policy.js").Table, onnx: string | null}}
 * described @param {boolean} runtime whether onnxruntime-web is served
 * @returns {Promise<Opponent>} */
export async function fromServer({ name, about, policy, onnx }, runtime) {
  const table = await opponent(name, about, tablePolicy(policy), "");
  if (!onnx) return table;
  const instead = "so the bot plays the same policy from the table that Python made of it.";
  if (!runtime) return { ...table, note: `${MISSING}, ${instead}` };
  try {
    const model = await modelPolicy(await (await fetch(onnx)).arrayBuffer());
    const rows = await model.probabilities(INFORMATION_STATES);
    const off = largestDifference(rows, table.rows).toPrecision(1);
    const note = `The ONNX model runs in this page, within ${off} of Python.`;
    return { ...table, policy: model, rows, note };
  } catch (error) {
    console.info(error);
    return { ...table, note: `${UNLIKE}, ${instead}` };
  }
}

/** The person's own file.
 * @param {File} file @param {boolean} runtime @returns {Promise<Opponent>} */
export async function fromFile(file, runtime) {
  const kind = file.name.split(".").at(-1)?.toLowerCase();
  if (file.size > LARGEST) throw new RangeError("larger than 64 MiB");
  if (kind === "json")
    return opponent(file.name, "", tablePolicy(readTable(await file.text())), "");
  if (kind === "zip")
    throw new RangeError(`give a model to Python: python -m algorithms.play ${file.name}`);
  if (kind !== "onnx") throw new RangeError("want a policy as .json or .onnx");
  if (!runtime) throw new RangeError(MISSING);
  try {
    const model = await modelPolicy(await file.arrayBuffer());
    return await opponent(file.name, "", model, "The ONNX model runs in this page.");
  } catch (error) {
    console.info(error);
    throw new RangeError(UNLIKE);
  }
}

/** @param {ArrayBuffer} bytes */
async function modelPolicy(bytes) {
  const ort = await import(new URL(RUNTIME, document.baseURI).href);
  return onnxPolicy(new Uint8Array(bytes), ort);
}

/** @param {string} name @param {string} about @param {import("./policy.js").Policy} policy
 * @param {string} note @returns {Promise<Opponent>} */
async function opponent(name, about, policy, note) {
  const rows = await policy.probabilities(INFORMATION_STATES);
  return { name, about, id: fingerprint(rows), policy, rows, note };
}

/** A short name for what a policy plays, to six digits (FNV-1a).
 * @param {number[][]} rows @returns {string} */
export function fingerprint(rows) {
  const text = rows
    .flat()
    .map((p) => p.toFixed(6))
    .join();
  let hash = 0x811c9dc5;
  for (const letter of text) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** @param {number[][]} a @param {number[][]} b */
const largestDifference = (a, b) =>
  Math.max(...a.flatMap((row, i) => row.map((p, j) => Math.abs(p - b[i][j]))));
