// Small helpers around the document.

/** @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {string} tag @param {string} text @param {string} [className] */
export function element(tag, text, className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

/** An element with attributes and children; text stays text.
 * @param {string} tag @param {Record<string, string | number | boolean>} attributes false leaves out
 * @param {...(Node | string)} children @returns {HTMLElement} */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== false) made.setAttribute(name, value === true ? "" : String(value));
  made.append(...children);
  return made;
}
