// The summary: how good each policy is, on a scale from uniform play to equilibrium, and by player.

import { byId, make } from "../dom.js";
import { capital, figure, plural, signed } from "../text.js";
import { lossParts, lossesOf } from "./losses.js";
import { data, definitions, isMeasured, nameTag, nashConvOf } from "./parts.js";
import { ZERO, decades, position, ticks } from "./scale.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {ReturnType<typeof import("./document.js").decodeDocument>} Report */
/** @typedef {ReturnType<typeof decades>} Scale */

const PLACE_OF_ZERO = 16; // percent of the scale that is set apart for 0
const ZERO_AT = 3; // percent

/** @param {Report} report */
export function showSummary(report) {
  const scale = decades(allValues(report));
  const rows = scaleRows(report, scale);
  byId("scale").replaceChildren(...rows, scaleAxis(scale));
  byId("scale").hidden = !rows.length;
  byId("policies").replaceChildren(...report.policies.map((policy) => card(report, policy)));
}

/** @param {Report} report */
const allValues = ({ policies, game }) =>
  [...policies.map((policy) => nashConvOf(policy).value), game.uniform_nash_conv ?? 0].filter(
    Number.isFinite,
  );

/** @param {number} value @param {Scale} scale @returns {number} percent */
const placeOf = (value, scale) =>
  value <= ZERO ? ZERO_AT : PLACE_OF_ZERO + (100 - PLACE_OF_ZERO) * position(value, scale);

/** @param {number} value @returns {string} */
const upToRounding = (value) => (value <= ZERO ? "0" : figure(value));

/** One line per policy, the best first; uniform play among them.
 * @param {Report} report @param {Scale} scale @returns {HTMLElement[]} */
function scaleRows(report, scale) {
  const rows = report.policies.filter(isMeasured).map((policy) => {
    const { value, exact } = nashConvOf(policy);
    return { value, exact, name: nameTag(policy) };
  });
  const uniform = report.game.uniform_nash_conv;
  if (uniform !== null && report.policies.every(({ name }) => name !== "uniform"))
    rows.push({
      value: uniform,
      exact: true,
      name: make(
        "span",
        { class: "name colour-uniform" },
        make("i", { class: "dot", "aria-hidden": "true" }),
        "uniform play",
      ),
    });
  return rows
    .sort((a, b) => a.value - b.value)
    .map(({ value, exact, name }) => {
      const dot = make("i", { class: "mark" });
      dot.style.setProperty("--at", `${placeOf(value, scale)}%`);
      const track = make("span", { class: `track ${name.className}`, "aria-hidden": "true" }, dot);
      const text = upToRounding(value);
      const shown = data(value, exact ? text : `at least ${text}`);
      return make("li", {}, name, track, shown);
    });
}

/** @param {Scale} scale @returns {HTMLElement} */
function scaleAxis(scale) {
  const marks = [{ value: 0, text: "0" }, ...ticks(scale)].map(({ value, text }) => {
    const mark = make("span", {}, text);
    mark.style.setProperty("--at", `${placeOf(value, scale)}%`);
    return mark;
  });
  return make(
    "li",
    { class: "axis", "aria-hidden": "true" },
    make("span", { class: "track" }, ...marks),
  );
}

/** @param {Report} report @param {Policy} policy @returns {HTMLElement} */
function card(report, policy) {
  return make(
    "article",
    { class: "panel policy" },
    make("h3", {}, nameTag(policy)),
    headline(policy, report.game.num_players),
    ...(policy.verdict && !policy.role ? [make("p", {}, `${capital(policy.verdict)}.`)] : []),
    ...(policy.role ? [] : worst(report, policy)),
    ...playersTable(report, policy),
    ...notes(policy),
  );
}

/** @param {Policy} policy @param {number} players @returns {HTMLElement} */
function headline(policy, players) {
  if (!isMeasured(policy)) return make("p", { class: "quiet" }, "NashConv was not measured.");
  const { value, exact } = nashConvOf(policy);
  const exploitability = policy.exploitability ?? policy.exploitability_at_least ?? NaN;
  const [low, high] = policy.interval ?? [0, 0];
  const least = exact ? "" : "at least ";
  return make(
    "dl",
    { class: "headline" },
    make(
      "div",
      {},
      make("dt", {}, "NashConv"),
      make("dd", { class: "large" }, least, data(value, upToRounding(value))),
      ...(exact ? [] : [make("dd", {}, `95% interval ${figure(low)} to ${figure(high)}`)]),
    ),
    make(
      "div",
      {},
      make("dt", {}, "Exploitability"),
      make("dd", { class: "large" }, least, data(exploitability, upToRounding(exploitability))),
      make("dd", {}, `NashConv / ${plural(players, "player")}`),
    ),
  );
}

/** The largest loss of a policy.
 * @param {Report} report @param {Policy} policy @returns {HTMLElement[]} */
function worst(report, policy) {
  const [loss] = lossesOf(report, policy);
  if (!loss) return [];
  return [
    make("h4", {}, "Where it loses most"),
    make("div", { class: "loss worst" }, ...lossParts(loss, policy)),
  ];
}

/** @param {Report} report @param {Policy} policy @returns {HTMLElement[]} */
function playersTable({ game }, policy) {
  /** @type {[string, number[]][]} */
  const columns = [
    ["wins", policy.values],
    ["could win", policy.best_values],
    ["gain", policy.gains],
  ];
  const shown = columns.filter(([, values]) => values.length);
  if (!shown.length) return [];
  const head = make(
    "tr",
    {},
    make("td"),
    ...shown.map(([name]) => make("th", { scope: "col" }, name)),
  );
  const rows = Array.from({ length: game.num_players }, (_, player) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, `player_${player}`),
      ...shown.map(([name, values]) =>
        make(
          "td",
          { class: name === "gain" ? "gain" : "" },
          data(values[player], signed(values[player], 4)),
        ),
      ),
    ),
  );
  const caption =
    "Chips per hand by player" +
    (policy.best_values.length ? "; could win: with a best response to the others" : "");
  return [
    make(
      "table",
      { class: "players" },
      make("caption", {}, caption),
      make("thead", {}, head),
      make("tbody", {}, ...rows),
    ),
  ];
}

/** How the policy was made, if the files beside it say so.
 * @param {Policy} policy @returns {HTMLElement[]} */
function notes(policy) {
  const groups = Object.entries(policy.notes);
  if (!groups.length) return [];
  const lists = groups.map(([heading, values]) =>
    make(
      "div",
      {},
      make("h4", {}, capital(heading)),
      make("dl", { class: "rows" }, ...definitions(Object.entries(values))),
    ),
  );
  return [
    make("details", { class: "notes" }, make("summary", {}, "Settings and versions"), ...lists),
  ];
}
