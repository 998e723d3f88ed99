// What the hands played so far say: totals and 95% intervals.

/** One finished hand: chips won, and what its moves cost against the opponent and the reference.
 * @typedef {{chips: number, cost: number, referenceCost: number}} Hand */

const WITHIN = 1.96; // standard errors: 95 of 100

/** Total and mean with half the width of their 95% intervals, null below two hands.
 * @param {readonly Hand[]} hands */
export function totals(hands) {
  const n = hands.length;
  const total = sum(hands.map(({ chips }) => chips));
  const mean = n ? total / n : 0;
  const squares = sum(hands.map(({ chips }) => (chips - mean) ** 2));
  const margin = n > 1 ? WITHIN * Math.sqrt(squares / (n - 1) / n) : null;
  return {
    n,
    total,
    mean,
    margin,
    totalMargin: margin === null ? null : n * margin,
    cost: sum(hands.map(({ cost }) => cost)),
    referenceCost: sum(hands.map(({ referenceCost }) => referenceCost)),
  };
}

/** @param {number[]} values */
const sum = (values) => values.reduce((total, value) => total + value, 0);
