// What the browser remembers between visits: every opponent's hands, the last choice, and whether
// the rules were shown. Where it may not remember anything, the page forgets on reload.

/** @typedef {import("./score.js").Result} Result */

const PREFIX = "kuhn-bridge:";
/** What could not be written, for this visit.
 * @type {Map<string, string>} */
const unwritten = new Map();

/** @param {string} key @returns {any} */
function read(key) {
  try {
    return JSON.parse(unwritten.get(key) ?? localStorage.getItem(PREFIX + key) ?? "null");
  } catch {
    return null; // forbidden, or not what we wrote
  }
}

/** @param {string} key @param {any} value */
function write(key, value) {
  const text = JSON.stringify(value);
  try {
    localStorage.setItem(PREFIX + key, text);
    unwritten.delete(key);
  } catch {
    unwritten.set(key, text); // forbidden, or full
  }
}

export const sawRules = () => read("rules") === true;
export const rememberRules = () => write("rules", true);

/** The opponent chosen last, if it was chosen over the same one given on the command line.
 * @param {string} given @returns {string | null} */
export function chosen(given) {
  const choice = read("choice");
  return choice?.given === given ? choice.chosen : null;
}

/** @param {string} given @param {string} chosen */
export const rememberChoice = (given, chosen) => write("choice", { given, chosen });

/** @param {string} opponent by fingerprint @returns {Result[]} the hands played against it */
export function hands(opponent) {
  const stored = read(`hands:${opponent}`);
  const whole = Array.isArray(stored) && stored.every(isResult);
  return whole ? stored.map(([seat, chips, cost]) => ({ seat, chips, cost })) : [];
}

/** @param {string} opponent @param {Result} result @returns {Result[]} all hands, this one last */
export function addHand(opponent, result) {
  const all = [...hands(opponent), result];
  write(
    `hands:${opponent}`,
    all.map(({ seat, chips, cost }) => [seat, chips, Number(cost.toFixed(6))]),
  );
  return all;
}

/** @param {string} opponent */
export const forgetHands = (opponent) => write(`hands:${opponent}`, []);

/** @param {any} stored */
const isResult = (stored) =>
  Array.isArray(stored) &&
  stored.length === 3 &&
  [0, 1].includes(stored[0]) &&
  [-2, -1, 1, 2].includes(stored[1]) &&
  stored[2] >= 0 &&
  Number.isFinite(stored[2]);
