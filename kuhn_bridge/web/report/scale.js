// Logarithmic scales: where a value stands between two powers of ten, and where the ticks are.

export const ZERO = 1e-9; // a NashConv below this is 0 up to rounding, as Python's verdict says

/** The range of powers of ten that holds all values that are not 0.
 * @param {readonly number[]} values @returns {{low: number, high: number}} exponents */
export function decades(values) {
  const logs = values.filter((value) => value > ZERO).map(Math.log10);
  if (!logs.length) return { low: -1, high: 0 };
  const [low, high] = [Math.floor(Math.min(...logs)), Math.ceil(Math.max(...logs))];
  return { low, high: Math.max(high, low + 1) };
}

/** @param {number} value above 0 @param {{low: number, high: number}} scale
 * @returns {number} from 0 at the lowest to 1 at the highest power */
export const position = (value, { low, high }) => (Math.log10(value) - low) / (high - low);

/** @param {{low: number, high: number}} scale @returns {{value: number, text: string}[]} */
export function ticks({ low, high }) {
  const step = Math.ceil((high - low) / 5);
  const found = [];
  for (let exponent = high; exponent >= low; exponent -= step)
    found.push({ value: 10 ** exponent, text: powerText(exponent) });
  return found.reverse();
}

/** @param {number} exponent @returns {string} "0.01", "100", "1e−6" */
function powerText(exponent) {
  if (exponent < -4) return `1e−${-exponent}`;
  return exponent < 0 ? (10 ** exponent).toFixed(-exponent) : String(10 ** exponent);
}
