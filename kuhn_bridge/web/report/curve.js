// The learning curve: NashConv over steps on a logarithmic scale, with the values at the pointer.

import { byId, make, shape } from "../dom.js";
import { figure, plural } from "../text.js";
import { colourOf } from "./parts.js";
import { decades, position, ticks } from "./scale.js";

/** @typedef {ReturnType<typeof import("./document.js").decodeDocument>} Report */
/** @typedef {{name: string, className: string, steps: number[], values: number[]}} Line */

/** @param {Report} report @returns {boolean} whether there is a curve to show */
export function showCurve(report) {
  const lines = linesOf(report);
  if (!lines.length) return false;
  const chart = scaled(lines, report.game.uniform_nash_conv);
  byId("curve-lines").replaceChildren(...lines.map((line) => polyline(line, chart)));
  byId("curve-axis").replaceChildren(...axis(chart));
  byId("curve-start").textContent = "0";
  byId("curve-end").textContent = plural(chart.last, "step");
  byId("curve-lines").setAttribute("aria-label", inWords(lines));
  follow(lines, chart);
  return true;
}

/** @param {Report} report @returns {Line[]} the average policy and the last one of each run */
const linesOf = ({ policies }) =>
  policies.flatMap((policy) => {
    const { curve, name } = policy;
    if (!curve) return [];
    return /** @type {const} */ (["average", "last"]).map((kind) => ({
      name: `${name}: ${kind}`,
      className: `${kind} ${colourOf(policy)}`,
      steps: curve.steps,
      values: curve[kind],
    }));
  });

/** @param {Line[]} lines @param {number | null} uniform */
function scaled(lines, uniform) {
  const values = lines.flatMap((line) => line.values);
  const longest = lines.reduce((a, b) =>
    b.steps[b.steps.length - 1] > a.steps[a.steps.length - 1] ? b : a,
  );
  return {
    scale: decades([...values, ...(uniform ? [uniform] : [])]),
    last: longest.steps[longest.steps.length - 1],
    grid: longest.steps,
    uniform,
  };
}

/** @typedef {ReturnType<typeof scaled>} Chart */

/** @param {number} value @param {Chart} chart @returns {number} percent from the top */
const height = (value, { scale }) =>
  100 * (1 - Math.max(0, position(Math.max(value, 1e-300), scale)));

/** @param {Line} line @param {Chart} chart @returns {SVGElement} */
function polyline({ className, steps, values }, chart) {
  const points = steps.map(
    (step, i) => `${((100 * step) / chart.last).toFixed(3)},${height(values[i], chart).toFixed(3)}`,
  );
  return shape("polyline", className, points);
}

/** @param {Chart} chart @returns {HTMLElement[]} */
function axis(chart) {
  const marks = ticks(chart.scale).map(({ value, text }) => ({ value, text, className: "tick" }));
  if (chart.uniform)
    marks.push({
      value: chart.uniform,
      text: `uniform play ${figure(chart.uniform)}`,
      className: "uniform",
    });
  return marks.map(({ value, text, className }) => {
    const mark = make("span", { class: className }, make("span", {}, text));
    mark.style.setProperty("--at", `${height(value, chart)}%`);
    return mark;
  });
}

/** @param {Line[]} lines @returns {string} */
const inWords = (lines) =>
  lines
    .map(
      ({ name, values }) =>
        `${name}: NashConv from ${figure(values[0])} to ${figure(values[values.length - 1])}`,
    )
    .join("; ");

/** Values at the step that the pointer, or the slider below, is at.
 * @param {Line[]} lines @param {Chart} chart */
function follow(lines, chart) {
  const slider = /** @type {HTMLInputElement} */ (byId("curve-step"));
  const last = chart.grid.length - 1;
  slider.max = String(last);
  slider.value = slider.max;
  const show = (/** @type {number} */ index) => {
    const step = chart.grid[index];
    byId("curve-cursor").style.setProperty("--at", `${(100 * step) / chart.last}%`);
    slider.setAttribute("aria-valuetext", `${plural(step, "step")}: ${valuesText(lines, step)}`);
    byId("curve-values").replaceChildren(
      make("b", {}, plural(step, "step")),
      ...lines.map((line) =>
        make(
          "span",
          { class: line.className },
          make("i", { class: "stroke" }),
          `${line.name} `,
          make("b", {}, figure(valueAt(line, step))),
        ),
      ),
    );
  };
  const point = (/** @type {PointerEvent} */ event) => {
    const { left, width } = byId("curve-lines").getBoundingClientRect();
    const step = ((event.clientX - left) / width) * chart.last;
    slider.value = String(nearest(chart.grid, step));
    show(Number(slider.value));
  };
  byId("curve-plot").addEventListener("pointermove", point);
  byId("curve-plot").addEventListener("pointerdown", point);
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(last);
}

/** @param {Line[]} lines @param {number} step @returns {string} */
const valuesText = (lines, step) =>
  lines.map((line) => `${line.name} ${figure(valueAt(line, step))}`).join(", ");

/** @param {Line} line @param {number} step @returns {number} of the point that is nearest */
const valueAt = ({ steps, values }, step) => values[nearest(steps, step)];

/** @param {readonly number[]} sorted @param {number} value @returns {number} the nearest's index */
export function nearest(sorted, value) {
  let best = 0;
  sorted.forEach((one, index) => {
    if (Math.abs(one - value) < Math.abs(sorted[best] - value)) best = index;
  });
  return best;
}
