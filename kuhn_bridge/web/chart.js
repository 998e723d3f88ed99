// A chart of the person's chips over the hands, beside the fair share and its band.

import { byId, shape } from "./dom.js";
import { WITHIN_95 } from "./estimate.js";
import { signed } from "./text.js";

const MAX_POINTS = 300; // more are not visible

/** @typedef {{hands: number, chips: number, share: number, margin: number}} Point */

/** The chips after each hand (or every few of them), what perfect play would have won on average
 * from the same seats, and the margin around that which contains 95% of perfect players.
 * @param {readonly import("./score.js").Result[]} results @param {number} value player_0's, per hand
 * @param {number} variance of one hand @returns {Point[]} */
export function points(results, value, variance) {
  const step = Math.ceil(results.length / MAX_POINTS);
  let [chips, share] = [0, 0];
  const all = [{ hands: 0, chips, share, margin: 0 }];
  results.forEach((result, index) => {
    chips += result.chips;
    share += result.seat === 0 ? value : -value;
    const hands = index + 1;
    if (hands % step === 0 || hands === results.length)
      all.push({ hands, chips, share, margin: WITHIN_95 * Math.sqrt(variance * hands) });
  });
  return all;
}

/** @param {Point[]} path as `points` gives it */
export function showChart(path) {
  const ends = path.flatMap(({ chips, share, margin }) => [chips, share - margin, share + margin]);
  const [low, high] = [Math.min(-2, ...ends), Math.max(2, ...ends)];
  const last = path[path.length - 1];
  const x = (/** @type {Point} */ { hands }) => (100 * hands) / Math.max(1, last.hands);
  const y = (/** @type {number} */ chips) => (100 * (high - chips)) / (high - low);
  const line = (/** @type {(point: Point) => number} */ of) =>
    path.map((point) => `${x(point).toFixed(2)},${y(of(point)).toFixed(2)}`);
  const upper = line(({ share, margin }) => share + margin);
  const lower = line(({ share, margin }) => share - margin).reverse();
  byId("chart").replaceChildren(
    shape("polygon", "band", [...upper, ...lower]),
    shape("polyline", "zero", [`0,${y(0)}`, `100,${y(0)}`]),
    shape(
      "polyline",
      "share",
      line(({ share }) => share),
    ),
    shape(
      "polyline",
      "chips",
      line(({ chips }) => chips),
    ),
  );
  byId("chart").setAttribute("aria-label", inWords(last));
  byId("chart-high").textContent = signed(high);
  byId("chart-low").textContent = signed(low);
  byId("chart-hands").textContent = last.hands === 1 ? "1 hand" : `${last.hands} hands`;
}

/** @param {Point} last */
const inWords = ({ hands, chips, share, margin }) =>
  `After ${hands} hands you have ${signed(chips)} chips; the fair share is ${signed(share, 2)}, ` +
  `and 95 of 100 perfect players are between ${signed(share - margin, 1)} ` +
  `and ${signed(share + margin, 1)}.`;
