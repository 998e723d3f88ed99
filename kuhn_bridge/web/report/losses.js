// Where chips are lost: the information sets of a policy, the largest loss first.

import { byId, make } from "../dom.js";
import { plural, share } from "../text.js";
import { bestText, data, definitions, likeliestNode, linkTo, mixText } from "./parts.js";
import { nashConvOf, referenceOf, tablesOf } from "./parts.js";
import { ZERO } from "./scale.js";
import { hasWords, infosetLabel, textOf } from "./tree.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {ReturnType<typeof import("./document.js").decodeDocument>} Report */
/** An information set that loses chips: its facts, by name, are made when they are shown.
 * @typedef {{player: number, text: string, label: string, reach: number, lost: number,
 *   href: () => string | null, facts: () => [string, string][]}} Loss */

const FIRST = 8; // losses at the start
const MORE = 40; // losses per click

/** @param {Report} report @returns {boolean} whether any policy loses chips */
export function showLosses(report) {
  const losing = report.policies.filter((policy) => lossesOf(report, policy).length);
  if (!losing.length) return false;
  const menu = /** @type {HTMLSelectElement} */ (byId("losses-policy"));
  const players = /** @type {HTMLSelectElement} */ (byId("losses-player"));
  const filter = /** @type {HTMLInputElement} */ (byId("losses-text"));
  menu.replaceChildren(...losing.map(({ name }, i) => new Option(name, String(i))));
  menu.parentElement?.toggleAttribute("hidden", losing.length === 1);
  for (let player = 0; player < report.game.num_players; player++)
    players.add(new Option(`player_${player}`, String(player)));
  const show = (most = FIRST) => {
    const policy = losing[Number(menu.value)];
    const found = lossesOf(report, policy).filter(
      ({ player, text }) =>
        (players.value === "" || player === Number(players.value)) && hasWords(text, filter.value),
    );
    const shown = found.slice(0, most);
    byId("losses-list").replaceChildren(
      ...shown.map((loss) => item(loss, policy, loss.lost / shown[0].lost)),
    );
    byId("losses-count").textContent = countText(policy, found.length, shown.length);
    byId("losses-more").hidden = shown.length === found.length;
  };
  for (const control of [menu, players, filter]) control.addEventListener("input", () => show());
  byId("losses-more").addEventListener("click", () => {
    const { children } = byId("losses-list");
    const before = children.length;
    show(before + MORE);
    children[before].querySelector("a")?.focus();
  });
  show();
  return true;
}

/** @param {Report} report @param {Policy} policy @returns {Loss[]} the largest first */
export function lossesOf({ tree, policies }, policy) {
  if (!tree)
    return policy.losses.map((loss) => ({
      ...loss,
      text: loss.label.toLowerCase(),
      href: () => null,
      facts: () => [
        ["plays most", `${loss.played} ${share(loss.probability)}`],
        ["best response", loss.best],
      ],
    }));
  const reference = referenceOf(policies);
  const { ranking, reach, losses } = tablesOf(policy);
  return Array.from(ranking, (infoset) => ({
    player: tree.owner[infoset],
    label: infosetLabel(tree, infoset),
    text: textOf(tree, infoset),
    reach: reach[infoset],
    lost: losses[infoset],
    href: () => linkTo(tree, likeliestNode(tree, policy, infoset)),
    facts: () => [
      ["plays", mixText(tree, policy, infoset)],
      ["best response", bestText(tree, policy, infoset)],
      ...(reference && reference !== policy
        ? [[`${reference.name} plays`, mixText(tree, reference, infoset)]]
        : []),
    ],
  }));
}

/** @param {Policy} policy @param {number} count @param {number} shown @returns {string} */
function countText({ name, tables }, count, shown) {
  if (!count) return `No loss of ${name} matches`;
  const all = tables
    ? `${plural(count, "information set")} of ${name} lose chips`
    : `${count} of the largest losses of ${name}`;
  return `${all}; ${shown} shown`;
}

/** @param {Loss} loss @param {Policy} policy @param {number} length of the bar, at most 1 */
function item(loss, policy, length) {
  const bar = make("i", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", String(length));
  return make("li", { class: "panel loss" }, bar, ...lossParts(loss, policy));
}

/** Where chips are lost, how many, and what would be better there.
 * @param {Loss} loss @param {Policy} policy @returns {HTMLElement[]} */
export function lossParts({ label, lost, reach, href, facts }, policy) {
  const { value, exact } = nashConvOf(policy);
  const link = href();
  return [
    make("p", { class: "place" }, link ? make("a", { href: link }, label) : label),
    make(
      "p",
      { class: "lost" },
      data(lost),
      " chips per hand",
      ...(exact && value > ZERO ? [make("small", {}, `, ${share(lost / value)} of NashConv`)] : []),
    ),
    make("dl", {}, ...definitions([...facts(), ["reached in", `${share(reach)} of hands`]])),
  ];
}
