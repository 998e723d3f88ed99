// What the browser stores: the hands against each opponent, the person's own files, whether the
// rules were shown, and until the tab is closed the chosen opponent. Without storage the page works,
// but forgets on reload.

/** @typedef {import("./score.js").Result} Result */

/** A policy of the person's own, with its text as in a policy file.
 * @typedef {{name: string, kind: "table" | "onnx", policy: string}} OwnFile */

const PREFIX = "kuhn-bridge:";
const MAX_FILES = 8; // a short menu
const always = () => localStorage;
const inThisTab = () => sessionStorage;
/** Values that could not be stored, for this visit.
 * @type {Map<string, string>} */
const unwritten = new Map();

/** @param {() => Storage} where @param {string} key @returns {any} */
function read(where, key) {
  try {
    return JSON.parse(unwritten.get(key) ?? where().getItem(PREFIX + key) ?? "null");
  } catch {
    return null; // forbidden, or not written by this page
  }
}

/** @param {() => Storage} where @param {string} key @param {any} value */
function write(where, key, value) {
  const text = JSON.stringify(value);
  try {
    where().setItem(PREFIX + key, text);
    unwritten.delete(key);
  } catch {
    unwritten.set(key, text); // forbidden, or full
  }
}

export const sawRules = () => read(always, "rules") === true;
export const rememberRules = () => write(always, "rules", true);

/** The opponent chosen before a reload, if the command line still names the same one.
 * @param {string} given @returns {string | null} */
export function chosen(given) {
  const choice = read(inThisTab, "choice");
  return choice?.given === given ? choice.chosen : null;
}

/** @param {string} given @param {string} chosen */
export const rememberChoice = (given, chosen) => write(inThisTab, "choice", { given, chosen });

/** @returns {OwnFile[]} the latest last */
export function files() {
  const stored = read(always, "files");
  return Array.isArray(stored) ? stored.filter(isFile) : [];
}

/** @param {OwnFile} file */
export const rememberFile = (file) =>
  write(always, "files", [...files(), file].slice(-MAX_FILES));

/** @param {any} stored */
const isFile = (stored) =>
  typeof stored?.name === "string" &&
  ["table", "onnx"].includes(stored.kind) &&
  typeof stored.policy === "string";

/** @param {string} opponent by fingerprint @returns {Result[]} the hands played against it */
export function hands(opponent) {
  const stored = read(always, `hands:${opponent}`);
  const whole = Array.isArray(stored) && stored.every(isResult);
  return whole ? stored.map(([seat, chips, cost]) => ({ seat, chips, cost })) : [];
}

/** @param {string} opponent @param {Result} result @returns {Result[]} all hands, this one last */
export function addHand(opponent, result) {
  const all = [...hands(opponent), result];
  write(
    always,
    `hands:${opponent}`,
    all.map(({ seat, chips, cost }) => [seat, chips, Number(cost.toFixed(6))]),
  );
  return all;
}

/** @param {string} opponent */
export const forgetHands = (opponent) => write(always, `hands:${opponent}`, []);

/** @param {any} stored */
const isResult = (stored) =>
  Array.isArray(stored) &&
  stored.length === 3 &&
  [0, 1].includes(stored[0]) &&
  [-2, -1, 1, 2].includes(stored[1]) &&
  stored[2] >= 0 &&
  Number.isFinite(stored[2]);
