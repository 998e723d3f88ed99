// Helpers that find and create elements of the page.

/** @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

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

/** A line or an area of a chart.
 * @param {string} tag @param {string} className @param {string[]} points "x,y" each */
export function shape(tag, className, points) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  made.setAttribute("class", className);
  made.setAttribute("points", points.join(" "));
  return made;
}
