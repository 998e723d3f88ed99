// Numbers as text, on every page.

/** @param {number} amount not below 0 @returns {string} "nothing", "1 chip", "0.38 chips" */
export function chips(amount) {
  const text = String(Number(amount.toFixed(2)));
  if (text === "0") return "nothing";
  return `${text} ${text === "1" ? "chip" : "chips"}`;
}

/** @param {string} text */
export const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** @param {number} value @param {number} [digits] @returns {string} "+1.25", "−2", "0" */
export function signed(value, digits = 0) {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

/** @param {number} p @returns {string} */
export const percent = (p) => `${Math.round(100 * p)}%`;

/** A probability with as many digits as it needs.
 * @param {number} p @returns {string} "62.1%", "0.02%", "<0.01%", "0%", "100%" */
export function share(p) {
  if (!(p > 0)) return "0%";
  if (p < 0.0001) return "<0.01%";
  const digits = p < 0.001 ? 2 : 1;
  const text = (100 * p).toFixed(digits);
  if (p < 1 && Number(text) === 100) return ">99.9%";
  return `${Number(text) === 100 ? 100 : text}%`;
}

/** @param {number} value @returns {string} four significant digits: "0.2038", "4.747", "1.2e−7" */
export function figure(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 0.0001 ? size.toExponential(1).replace("-", "−") : size.toPrecision(4);
  const plain = size >= 10000 ? Math.round(size).toLocaleString("en") : text;
  return `${value < 0 ? "−" : ""}${plain}`;
}

/** @param {number} count @param {string} one @param {string} [many] @returns {string} "1 hand" */
export const plural = (count, one, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
