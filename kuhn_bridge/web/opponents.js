// The opponents: those that the server names, and files that are dropped on the page.

import * as memory from "./memory.js";
import { readTable, tableRows, tableText } from "./policy.js";

/** `id` identifies the policy, independent of its name; `note` says where its rows come from.
 * @typedef {object} Opponent
 * @property {string} name
 * @property {string} about
 * @property {string} id
 * @property {"table" | "onnx"} kind
 * @property {number[][]} rows what it plays at the 12 information states
 * @property {string} note
 */

const RUNTIME = "ort/ort.wasm.bundle.min.mjs";
const MISSING =
  "onnxruntime-web is missing " +
  "(run “npm install onnxruntime-web@1.30.0” in the folder you play from)";
const CANNOT_RUN = "The page could not run this ONNX file (docs/onnx.md says what it needs)";
const RAN = "The ONNX model was run in this page";
const MAX_BYTES = 64 * 2 ** 20;
const TIMEOUT = 10; // seconds for a model

/** An opponent as the server describes it: an ONNX model runs here if it can, or its table plays.
 * @param {{name: string, about: string, policy: import("./policy.js").Table, onnx: string | null}}
 * described @param {boolean} runtime whether onnxruntime-web is served
 * @returns {Promise<Opponent>} */
export async function fromServer({ name, about, policy, onnx }, runtime) {
  const table = opponent(name, about, "table", tableRows(policy), "");
  if (!onnx) return table;
  const instead = "so the bot plays the same policy from the table that Python made of it.";
  if (!runtime) return { ...table, note: `${MISSING}, ${instead}` };
  try {
    const rows = await modelRows(await (await fetch(onnx)).arrayBuffer());
    const off = largestDifference(rows, table.rows).toPrecision(1);
    return { ...table, kind: "onnx", rows, note: `${RAN}, within ${off} of Python.` };
  } catch (error) {
    console.info(error);
    return { ...table, note: `${CANNOT_RUN}, ${instead}` };
  }
}

/** The person's own file.
 * @param {File} file @param {boolean} runtime @returns {Promise<Opponent>} */
export async function fromFile(file, runtime) {
  const kind = file.name.split(".").at(-1)?.toLowerCase();
  if (file.size > MAX_BYTES) throw new RangeError("larger than 64 MiB");
  if (kind === "json")
    return opponent(file.name, "", "table", tableRows(readTable(await file.text())), "");
  if (kind === "zip")
    throw new RangeError(`give a model to Python: kuhn-bridge play ${file.name}`);
  if (kind !== "onnx") throw new RangeError("a policy must be .json or .onnx");
  if (!runtime) throw new RangeError(MISSING);
  try {
    return opponent(file.name, "", "onnx", await modelRows(await file.arrayBuffer()), `${RAN}.`);
  } catch (error) {
    console.info(error);
    const late = /** @type {Error} */ (error).name === "TimeoutError";
    throw new RangeError(late ? `no answer from this model in ${TIMEOUT} seconds` : CANNOT_RUN);
  }
}

/** Keep the person's file for later visits. @param {Opponent} file */
export const rememberFile = ({ name, kind, rows }) =>
  memory.rememberFile({ name, kind, policy: tableText(rows) });

/** The person's files of earlier visits; damaged ones are left out.
 * @returns {Opponent[]} */
export const rememberedFiles = () =>
  memory.files().flatMap(({ name, kind, policy }) => {
    try {
      const note = kind === "onnx" ? `${RAN}.` : "";
      return [opponent(name, "", kind, tableRows(readTable(policy)), note)];
    } catch {
      return [];
    }
  });

/** A model's probabilities at the 12 information states, computed in a worker of its own.
 * @param {ArrayBuffer} bytes @returns {Promise<number[][]>} */
function modelRows(bytes) {
  const worker = new Worker(new URL("model.js", import.meta.url), { type: "module" });
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new DOMException("too slow", "TimeoutError")), 1000 * TIMEOUT);
    worker.onerror = () => reject(new Error("the worker did not start"));
    worker.onmessage = ({ data: { rows, failure } }) =>
      rows ? resolve(rows) : reject(new Error(failure));
    worker.postMessage({ bytes, runtime: new URL(RUNTIME, document.baseURI).href });
  }).finally(() => worker.terminate());
}

/** @param {string} name @param {string} about @param {"table" | "onnx"} kind
 * @param {number[][]} rows @param {string} note @returns {Opponent} */
const opponent = (name, about, kind, rows, note) => ({
  name,
  about,
  id: fingerprint(rows),
  kind,
  rows,
  note,
});

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
