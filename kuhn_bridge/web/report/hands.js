// The public tree of a poker endgame: what a policy does at each decision, by hand.

import { byId, make } from "../dom.js";
import { share } from "../text.js";
import { data } from "./parts.js";
import { ZERO } from "./scale.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {import("./document.js").Hands} Hands */
/** @typedef {ReturnType<typeof import("./document.js").decodeDocument>} Report */

const UNIT = 255; // shares are numbers from 0 to this
const COLUMNS = 13;
const GROUPS = 60; // rows of the view by strength
const RED = /[\u2665\u2666]/; // hearts and diamonds
const ACTION_COLOURS = 6;

/** @param {Report} report @returns {boolean} whether the game has hands to show */
export function startHands({ hands, policies }) {
  const shown = policies.filter((policy) => policy.hands);
  if (!hands || !shown.length) return false;
  const menu = /** @type {HTMLSelectElement} */ (byId("hands-policy"));
  const view = /** @type {HTMLSelectElement} */ (byId("hands-view"));
  menu.replaceChildren(...shown.map(({ name }, i) => new Option(name, String(i))));
  menu.parentElement?.toggleAttribute("hidden", shown.length === 1);
  view.parentElement?.toggleAttribute("hidden", !hands.cell);
  byId("hands-board").replaceChildren("Board ", ...hands.board.map(cardTag));
  const path = [0];
  const show = () => {
    const policy = shown[Number(menu.value)];
    const node = path[path.length - 1];
    const go = (/** @type {number[]} */ to) => {
      path.splice(0, path.length, ...to);
      show();
      byId("hands-crumbs").querySelector("[aria-current]")?.setAttribute("tabindex", "-1");
    };
    showPlace(hands, policy, path, go);
    byId("hands-detail").replaceChildren(
      make("p", { class: "quiet" }, "Choose a hand to see what it does."),
    );
    const byGrid = hands.cell && view.value === "grid";
    byId("hands-grid").replaceChildren(
      byGrid ? gridOf(hands, policy, node) : byStrength(hands, policy, path),
    );
  };
  for (const control of [menu, view]) control.addEventListener("input", show);
  show();
  return true;
}

/** @param {Hands} hands @param {Policy} policy @param {number[]} path
 * @param {(path: number[]) => void} go */
function showPlace(hands, policy, path, go) {
  const node = path[path.length - 1];
  const { player, label, actions, children } = hands.nodes[node];
  byId("hands-place").textContent = `player_${player} ${label}`;
  const crumbs = path.map((at, i) => {
    const text = i === 0 ? "Start" : crumbText(hands, path[i - 1], at);
    const button = make("button", { type: "button", "aria-current": at === node && "step" }, text);
    button.addEventListener("click", () => go(path.slice(0, i + 1)));
    return make("li", {}, button);
  });
  byId("hands-crumbs").replaceChildren(...crumbs);
  const means = meanShares(hands, policy, path, [...hands.labels.keys()]);
  const items = actions.map((action, k) => {
    const played = share(means[k]);
    const parts = [swatch(k), ` ${action} `, make("small", {}, played)];
    const ends = children[k] < 0;
    const button = make("button", { type: "button", class: "pill", disabled: ends }, ...parts);
    button.addEventListener("click", () => go([...path, children[k]]));
    return make("li", {}, button);
  });
  byId("hands-actions").replaceChildren(...items);
}

/** @param {Hands} hands @param {number} parent @param {number} node @returns {string} */
function crumbText({ nodes }, parent, node) {
  const { player, actions, children } = nodes[parent];
  return `player_${player}: ${actions[children.indexOf(node)]}`;
}

/** How often each hand arrives at the end of a path by its player's own actions, with its weight.
 * @param {Hands} hands @param {Policy} policy @param {number[]} path @returns {number[]} */
function arrivals(hands, policy, path) {
  const { nodes, labels, weight } = hands;
  const { player } = nodes[path[path.length - 1]];
  const reach = labels.map((_, hand) => weight[player * labels.length + hand]);
  for (let i = 1; i < path.length; i++) {
    const parent = path[i - 1];
    if (nodes[parent].player !== player) continue;
    const k = nodes[parent].children.indexOf(path[i]);
    labels.forEach((_, hand) => (reach[hand] *= probability(hands, policy, parent, k, hand)));
  }
  return reach;
}

/** How often some hands take each action at the end of a path: each hand counts as often as it
 * arrives, and all count alike if none does.
 * @param {Hands} hands @param {Policy} policy @param {number[]} path @param {number[]} members
 * @returns {number[]} */
function meanShares(hands, policy, path, members) {
  const node = path[path.length - 1];
  const reach = arrivals(hands, policy, path);
  const anyArrives = members.some((hand) => reach[hand] > 0);
  const counts = members.map((hand) => (anyArrives ? reach[hand] : 1));
  const total = counts.reduce((sum, one) => sum + one, 0);
  return hands.nodes[node].actions.map((_, k) => {
    const played = members.map((hand, i) => counts[i] * probability(hands, policy, node, k, hand));
    return played.reduce((sum, one) => sum + one, 0) / total;
  });
}

/** @param {Hands} hands @param {Policy} policy @param {number} node @param {number} k
 * @param {number} hand @returns {number} */
export function probability({ firstEdge, labels }, policy, node, k, hand) {
  const { probability: all } = /** @type {NonNullable<Policy["hands"]>} */ (policy.hands);
  return all[(firstEdge[node] + k) * labels.length + hand] / UNIT;
}

/** @param {number} k @returns {HTMLElement} the colour of an action */
const swatch = (k) => make("i", { class: `swatch action-${k % ACTION_COLOURS}`, "aria-hidden": "true" });

/** A card in the colour of its suit.
 * @param {string} text @returns {HTMLElement} */
export const cardTag = (text) => make("span", { class: RED.test(text) ? "card red" : "card" }, text);

/** "A\u26659\u2660" as two cards.
 * @param {string} label @returns {HTMLElement[]} */
export const cardsOf = (label) => (label.match(/../gu) ?? []).map(cardTag);

/** Stripes as long as shares, from left to right.
 * @param {number[]} shares @returns {HTMLElement} */
function stripes(shares) {
  const bar = make("span", { class: "stripes", "aria-hidden": "true" });
  shares.forEach((one, k) => {
    const part = make("i", { class: `action-${k % ACTION_COLOURS}` });
    part.style.setProperty("--share", String(one));
    bar.append(part);
  });
  return bar;
}

/** @param {string[]} actions @param {number[]} shares @returns {string} "check 69%, pot bet 31%" */
const mixOf = (actions, shares) =>
  actions
    .map((action, k) => /** @type {[string, number]} */ ([action, shares[k]]))
    .filter(([, played]) => played >= 0.005)
    .sort((a, b) => b[1] - a[1])
    .map(([action, played]) => `${action} ${share(played)}`)
    .join(", ");

/** @param {Hands} hands @param {Policy} policy @param {number} node @returns {HTMLElement} */
function gridOf(hands, policy, node) {
  const { grid: mixes, arriving } = /** @type {NonNullable<Policy["hands"]>} */ (policy.hands);
  const { actions } = hands.nodes[node];
  const size = COLUMNS * COLUMNS;
  const members = Map.groupBy(hands.labels.keys(), (hand) => hands.cell[hand]);
  const cells = hands.cells.map((name, i) => {
    const own = members.get(i) ?? [];
    const shares = actions.map(
      (_, k) => (mixes?.[(hands.firstEdge[node] + k) * size + i] ?? 0) / UNIT,
    );
    const reach = (arriving?.[node * size + i] ?? 0) / UNIT;
    const text = !own.length ? "impossible" : reach ? mixOf(actions, shares) : "never arrives";
    const cell = make(
      "button",
      { type: "button", class: "cell", disabled: !own.length, "aria-label": `${name}: ${text}` },
      stripes(shares),
      make("span", {}, name),
    );
    cell.style.setProperty("--reach", String(reach));
    cell.addEventListener("click", () => showDetail(hands, policy, node, name, own));
    return cell;
  });
  return make("div", { class: "cells", role: "group", "aria-label": "Starting hands" }, ...cells);
}

/** @param {Hands} hands @param {Policy} policy @param {number[]} path @returns {HTMLElement} */
function byStrength(hands, policy, path) {
  const node = path[path.length - 1];
  const order = [...hands.labels.keys()].sort((a, b) => hands.strength[b] - hands.strength[a]);
  const size = Math.ceil(order.length / GROUPS);
  const { actions } = hands.nodes[node];
  const rows = [];
  for (let start = 0; start < order.length; start += size) {
    const own = order.slice(start, start + size);
    const shares = meanShares(hands, policy, path, own);
    const beats = share(hands.strength[own[0]]);
    const row = make(
      "button",
      { type: "button", class: "strength", "aria-label": `beats ${beats}: ${mixOf(actions, shares)}` },
      make("span", { class: "odds" }, beats),
      stripes(shares),
    );
    row.addEventListener("click", () => showDetail(hands, policy, node, `beats ${beats}`, own));
    rows.push(row);
  }
  const head = make("p", { class: "quiet" }, "The strongest hands first: what they beat.");
  return make("div", { class: "by-strength" }, head, ...rows);
}

/** @param {Hands} hands @param {Policy} policy @param {number} node @param {string} title
 * @param {number[]} own hands */
function showDetail(hands, policy, node, title, own) {
  const { losses } = /** @type {NonNullable<Policy["hands"]>} */ (policy.hands);
  const { actions } = hands.nodes[node];
  const rows = own.map((hand) => {
    const shares = actions.map((_, k) => probability(hands, policy, node, k, hand));
    const lost = losses[node * hands.labels.length + hand];
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, ...cardsOf(hands.labels[hand])),
      make("td", {}, stripes(shares), mixOf(actions, shares)),
      make("td", {}, share(hands.strength[hand])),
      make("td", {}, ...(lost > ZERO ? [data(lost)] : ["–"])),
    );
  });
  const heads = ["hand", "plays", "beats", "loses"].map((text) => make("th", { scope: "col" }, text));
  byId("hands-detail").replaceChildren(
    make("h4", {}, title),
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...heads)),
      make("tbody", {}, ...rows),
    ),
    make("p", { class: "quiet" }, "Losses in chips per hand, averaged over all deals."),
  );
}
