// The mean of independent hands, and how far off it may be.

export const WITHIN_95 = 1.96; // standard errors on either side of the mean

/** Total and mean of chips per hand with their standard errors, null below two hands.
 * @param {readonly number[]} chips */
export function estimate(chips) {
  const n = chips.length;
  const total = sum(chips);
  const mean = n ? total / n : 0;
  const squares = sum(chips.map((won) => (won - mean) ** 2));
  const error = n > 1 ? Math.sqrt(squares / (n - 1) / n) : null;
  return { n, total, mean, error, totalError: error === null ? null : n * error };
}

/** @param {readonly number[]} values */
export const sum = (values) => values.reduce((total, value) => total + value, 0);
