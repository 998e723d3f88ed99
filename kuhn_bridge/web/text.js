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
