// Where chips are lost: the information sets of a policy, the largest loss first.

import { byId, make } from "../dom.js";
import { plural, share } from "../text.js";
import { bestText, data, likeliestNode, linkTo, mixText, nashConvOf } from "./parts.js";
import { referenceOf, tablesOf } from "./parts.js";
import { ZERO } from "./scale.js";
import { infosetLabel, search } from "./tree.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {ReturnType<typeof import("./document.js").decodeDocument>} Report */
/** One line of the list, already in words.
 * @typedef {{label: string, href: string | null, plays: string, best: string, beside: string,
 *   reach: number, lost: number}} Line */

const FIRST = 8; // lines at the start
const MORE = 40; // lines per click

/** @param {Report} report @returns {boolean} whether any policy loses chips */
export function showLosses(report) {
  const losing = report.policies.filter(
    (policy) => policy.tables?.ranking.length || policy.losses.length,
  );
  if (!losing.length) return false;
  const controls = {
    policy: /** @type {HTMLSelectElement} */ (byId("losses-policy")),
    player: /** @type {HTMLSelectElement} */ (byId("losses-player")),
    text: /** @type {HTMLInputElement} */ (byId("losses-text")),
    more: /** @type {HTMLButtonElement} */ (byId("losses-more")),
  };
  controls.policy.replaceChildren(...losing.map(({ name }, i) => new Option(name, String(i))));
  controls.policy.parentElement?.toggleAttribute("hidden", losing.length === 1);
  for (let player = 0; player < report.game.num_players; player++)
    controls.player.add(new Option(`player_${player}`, String(player)));
  let most = FIRST;
  const show = () => {
    const policy = losing[Number(controls.policy.value)];
    const player = controls.player.value === "" ? null : Number(controls.player.value);
    const { lines, count } = select(report, policy, player, controls.text.value, most);
    const largest = lines.length ? lines[0].lost : 0;
    byId("losses-list").replaceChildren(
      ...lines.map((line) => item(line, policy, report, largest)),
    );
    byId("losses-count").textContent = countText(policy, count, lines.length);
    controls.more.hidden = lines.length >= count;
  };
  const start = () => {
    most = FIRST;
    show();
  };
  for (const control of [controls.policy, controls.player])
    control.addEventListener("change", start);
  controls.text.addEventListener("input", start);
  controls.more.addEventListener("click", () => {
    const shown = byId("losses-list").children.length;
    most += MORE;
    show();
    /** @type {HTMLElement | null} */ (
      byId("losses-list").children[shown]?.querySelector("a")
    )?.focus();
  });
  start();
  return true;
}

/** @param {Policy} policy @param {number} count @param {number} shown @returns {string} */
function countText({ name, tables }, count, shown) {
  if (!count) return `No loss of ${name} matches`;
  const all = tables
    ? `${plural(count, "information set")} of ${name} lose chips`
    : `${count} of the largest losses of ${name}`;
  return `${all}; ${shown} shown`;
}

/** The lines that match, at most `most` of them, and how many match in all.
 * @param {Report} report @param {Policy} policy @param {number | null} player
 * @param {string} text @param {number} most */
function select(report, policy, player, text, most) {
  if (!report.tree || !policy.tables) return selectInWords(policy, player, text, most);
  const { tree } = report;
  const { ranking } = policy.tables;
  const own =
    player === null
      ? ranking
      : ranking.filter((/** @type {number} */ i) => tree.owner[i] === player);
  const found = search(tree, text, Array.from(own));
  return { count: found.length, lines: found.slice(0, most).map((i) => lineOf(report, policy, i)) };
}

/** @param {Policy} policy @param {number | null} player @param {string} text @param {number} most */
function selectInWords(policy, player, text, most) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = policy.losses.filter(
    (line) =>
      (player === null || line.player === player) &&
      words.every((word) => line.label.toLowerCase().includes(word)),
  );
  const lines = found.slice(0, most).map(({ label, played, probability, best, reach, lost }) => ({
    label,
    href: null,
    plays: `${played} ${share(probability)}`,
    best,
    beside: "",
    reach,
    lost,
  }));
  return { count: found.length, lines };
}

/** @param {Report} report @param {Policy} policy @param {number} infoset @returns {Line} */
function lineOf({ tree, policies }, policy, infoset) {
  const reference = referenceOf(policies);
  const { reach, losses } = tablesOf(policy);
  return {
    label: infosetLabel(tree, infoset),
    href: linkTo(tree, likeliestNode(tree, policy, infoset)),
    plays: mixText(tree, policy, infoset),
    best: bestText(tree, policy, infoset),
    beside: reference && reference !== policy ? mixText(tree, reference, infoset) : "",
    reach: reach[infoset],
    lost: losses[infoset],
  };
}

/** @param {Line} line @param {Policy} policy @param {Report} report @param {number} largest
 * @returns {HTMLElement} */
function item(line, policy, report, largest) {
  const reference = referenceOf(report.policies);
  const total = nashConvOf(policy);
  const bar = make("i", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", String(line.lost / largest));
  const title = line.href
    ? make("a", { href: line.href }, line.label)
    : make("span", {}, line.label);
  const of =
    total.exact && total.value > ZERO ? `${share(line.lost / total.value)} of NashConv` : "";
  return make(
    "li",
    { class: "panel" },
    make("p", { class: "place" }, title),
    make(
      "p",
      { class: "lost" },
      bar,
      data(line.lost),
      " chips per hand",
      ...(of ? [make("small", {}, ` ${of}`)] : []),
    ),
    make(
      "dl",
      {},
      fact("plays", line.plays),
      fact("best", line.best, "best"),
      ...(line.beside && reference ? [fact(reference.name, line.beside, "beside")] : []),
      fact("reached in", `${share(line.reach)} of hands`),
    ),
  );
}

/** @param {string} name @param {string} text @param {string} [className] */
const fact = (name, text, className = "") =>
  make("div", { class: className }, make("dt", {}, name), make("dd", {}, text));
