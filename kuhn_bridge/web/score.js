// Totals of the hands so far, and how moves compare with perfect play, as numbers and words.

import { ACTIONS, BETTING, CARDS, informationState } from "./engine.js";
import { estimate, sum } from "./estimate.js";
import { chips, percent } from "./text.js";

/** @typedef {import("./engine.js").Decision} Decision */
/** One finished hand of the person: what it won, and what its moves gave away on average.
 * @typedef {{seat: 0 | 1, chips: number, cost: number}} Result */
/** What each action gives away against perfect play, per information state, in chips.
 * @typedef {Record<string, Record<string, number>>} Costs */
/** @typedef {Record<string, Record<string, [number, number]>>} Bands per information state and
 * action: the lowest and highest probability that any equilibrium gives it */

export const CARD_NAMES = Object.freeze(["Jack", "Queen", "King"]);
/** @type {Record<string, string>} */
const DONE = { check: "checked", bet: "bet", call: "called", fold: "folded" };
/** @type {Readonly<Record<string, string>>} */
export const WHERE = Object.freeze({
  "": "first to act",
  p: "after a check",
  b: "facing a bet",
  pb: "after check, bet",
});

/** Total and mean with their standard errors (null below two hands), what two perfect players
 * would expect from the same seats, and what the person's moves gave away.
 * @param {readonly Result[]} results @param {number} value player_0's, per hand */
export function score(results, value) {
  const expected = sum(results.map(({ seat }) => (seat === 0 ? value : -value)));
  const given = sum(results.map(({ cost }) => cost));
  return { ...estimate(results.map(({ chips }) => chips)), expected, given };
}

/** @param {string} letters @param {number} action @returns {string} "check", "call", "bet", "fold" */
export const word = (letters, action) => BETTING[BETTING[letters].after[action]].words.at(-1) ?? "";

/** @param {Decision} decision @param {number} action @param {Costs} costs */
export const costOf = (decision, action, costs) =>
  costs[informationState(decision)][ACTIONS[action]];

/** What the moves so far cost: "your check cost nothing, your call 1 chip".
 * @param {readonly {decision: Decision, action: number}[]} decided @param {Costs} costs */
export const costText = (decided, costs) =>
  decided
    .map(({ decision, action }, i) => {
      const move = word(decision.letters, action);
      return `your ${move} ${i ? "" : "cost "}${chips(costOf(decision, action, costs))}`;
    })
    .join(", ");

/** How perfect play moves where the person decided, and what that says about the move.
 * @param {Decision} decision @param {number} action what the person did @param {Bands} bands */
export function review(decision, action, bands) {
  const { card, letters } = decision;
  const row = bands[informationState(decision)];
  const verdict = frequency(row[ACTIONS[action]]);
  const link = verdict === "never" ? "which" : "as";
  return {
    how: `${CARDS[card]}, ${WHERE[letters]}: ${playsText(letters, row)}`,
    judgement: `You ${DONE[word(letters, action)]}, ${link} it ${verdict} does.`,
    verdict,
  };
}

/** @param {[number, number]} band @returns {"never" | "sometimes" | "mostly" | "always"} */
function frequency([low, high]) {
  if (high === 0) return "never";
  if (low === 1) return "always";
  return low > 0.5 ? "mostly" : "sometimes";
}

/** @param {string} letters @param {Bands[string]} row
 * @returns {string} "always calls", "checks 67%, bets 33%", "any mix of check and bet" */
function playsText(letters, row) {
  const move = (/** @type {string} */ name) => word(letters, ACTIONS.indexOf(name));
  if (Object.values(row).every(([low, high]) => low === 0 && high === 1))
    return `any mix of ${Object.keys(row).map(move).join(" and ")}`;
  return Object.entries(row)
    .filter(([, [, high]]) => high > 0)
    .map(([name, [low, high]]) =>
      low === 1 ? `always ${move(name)}s` : `${move(name)}s ${often([low, high])}`,
    )
    .join(", ");
}

/** @param {[number, number]} band @returns {string} */
export function often([low, high]) {
  if (low === 1) return "always";
  return percent(low) === percent(high)
    ? percent(low)
    : `${Math.round(100 * low)}–\u2060${percent(high)}`; // never broken over two lines
}
