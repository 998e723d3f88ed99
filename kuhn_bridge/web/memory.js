// What the browser remembers: every opponent's hands, the person's own files and whether the rules
// were shown; and over a reload, who was chosen. Where it may not remember anything, the page
// forgets on reload.

/** @typedef {import("./score.js").Result} Result */

/** A policy of the person's own, with its text as in a policy file.
 * @typedef {{name: string, kind: "table" | "onnx", policy: string}} OwnFile */

const PREFIX = "kuhn-bridge:";
const MOST_FILES = 8; // the menu stays short
const always = () => localStorage;
const inThisTab = () => sessionStorage;
/** What could not be written, for this visit.
 * @type {Map<string, string>} */
const unwritten = new Map();

/** @param {() => Storage} where @param {string} key @returns {any} */
function read(where, key) {
  try {
    return JSON.parse(unwritten.get(key) ?? where().getItem(PREFIX + key) ?? "null");
  } catch {
    return null; // forbidden, or not what we wrote
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
  write(always, "files", [...files(), file].slice(-MOST_FILES));

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
