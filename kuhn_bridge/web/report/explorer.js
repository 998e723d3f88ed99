// The explorer: the game from its root, step by step, with what each policy does and what is best.

import { byId, make } from "../dom.js";
import { plural, share, signed } from "../text.js";
import { bestText, colourOf, data, definitions, likeliestNode, linkTo } from "./parts.js";
import { nameTag, tablesOf } from "./parts.js";
import { CHANCE, actorOf, childrenOf, hasWords, historyOf, infosetLabel, kindOf } from "./tree.js";
import { membersOfInfoset, nodeAfter, pathTo, range, returnsAt, stepTo, textOf } from "./tree.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {import("./document.js").Tree} Tree */
/** @typedef {ReturnType<typeof import("./document.js").decodeDocument>} Report */

const HASH = "#explorer/";
const MOST_STEPS = 200; // buttons at once; a chance node can have thousands of outcomes
const MOST_MEMBERS = 12;
const MOST_RESULTS = 20;

/** Show the explorer at what the address says, and follow the address from then on.
 * @param {Report} report */
export function startExplorer(report) {
  const { tree } = report;
  const go = (/** @type {number} */ node) => {
    location.hash = `${HASH}${historyOf(tree, node)}`;
  };
  const follow = () => {
    if (!location.hash.startsWith(HASH)) return false;
    const node = nodeAfter(tree, decodeURIComponent(location.hash.slice(HASH.length)));
    show(report, node ?? 0);
    byId("explorer-trouble").textContent =
      node === null ? "The address names a history that this game does not have." : "";
    arrive();
    return true;
  };
  window.addEventListener("hashchange", follow);
  byId("explorer").addEventListener("keydown", (event) => onExplorerKey(event, tree));
  byId("explorer-up").addEventListener("click", () => go(Math.max(0, tree.parent[current()])));
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link?.hash.startsWith(HASH) && link.hash === location.hash) follow(); // no hashchange
  });
  startSearch(report, go);
  if (!follow()) show(report, startingNode(report));
}

/** Where a reader looks first: the largest loss of the first policy, or else the root.
 * @param {Report} report @returns {number} */
function startingNode({ tree, policies }) {
  const ranking = policies[0].tables?.ranking ?? [];
  return ranking.length ? likeliestNode(tree, policies[0], ranking[0]) : 0;
}

/** The node on the page. */
const current = () => Number(byId("explorer").dataset.node);

/** Scroll to the explorer, and move the focus to its heading. */
function arrive() {
  byId("explorer").scrollIntoView({ block: "start" });
  byId("place").focus({ preventScroll: true });
}

/** @param {Report} report @param {number} node */
function show(report, node) {
  const { tree } = report;
  byId("explorer").dataset.node = String(node);
  byId("crumbs").replaceChildren(...crumbs(tree, node));
  byId("explorer-up").toggleAttribute("disabled", node === 0);
  const view = { decision: showDecision, chance: showChance, terminal: showTerminal };
  view[kindOf(tree, node)](report, node);
}

/** @param {Tree} tree @param {number} node @returns {HTMLElement[]} */
const crumbs = (tree, node) =>
  [0, ...pathTo(tree, node)].map((at) =>
    make(
      "li",
      {},
      make(
        "a",
        { href: linkTo(tree, at), "aria-current": at === node && "page" },
        at === 0 ? "Start" : stepText(tree, at),
      ),
    ),
  );

/** @param {Tree} tree @param {number} node @returns {string} "player_0: call", "board Q♥" */
function stepText(tree, node) {
  const { player, label } = stepTo(tree, node);
  return player === CHANCE ? label : `player_${player}: ${label}`;
}

/** @param {string} title @param {string} key @param {...Node} parts */
function fill(title, key, ...parts) {
  byId("place").textContent = title;
  byId("key").textContent = key;
  byId("view").replaceChildren(...parts);
}

/** @param {Report} report @param {number} node */
function showChance({ tree }, node) {
  const all = childrenOf(tree, node);
  const items = all.slice(0, MOST_STEPS).map((child, i) => {
    const { label, probability } = stepTo(tree, child);
    const odds = make("span", { class: "odds" }, share(probability));
    return make("li", {}, stepLink(tree, child, i, label, odds));
  });
  const rest = all.length - items.length;
  fill(
    `Chance: ${plural(all.length, "outcome")}`,
    "",
    make("ul", { class: "outcomes", "aria-label": "Outcomes" }, ...items),
    ...(rest > 0 ? [make("p", { class: "quiet" }, `${rest} more outcomes: use the search.`)] : []),
  );
}

/** @param {Report} report @param {number} node */
function showTerminal({ tree }, node) {
  const rows = definitions(
    returnsAt(tree, node).map((won, player) => [
      `player_${player}`,
      data(won, signed(won, Number.isInteger(won) ? 0 : 2)),
    ]),
  );
  fill("The end: chips of each player", "", make("dl", { class: "returns" }, ...rows));
}

/** A step that can be taken: a link, so that it can be opened, copied and gone back from.
 * @param {Tree} tree @param {number} child @param {number} place @param {string} label
 * @param {...Node} rest */
function stepLink(tree, child, place, label, ...rest) {
  const key = place < 9 ? [make("kbd", { "aria-hidden": "true" }, String(place + 1))] : [];
  const shortcut = place < 9 && String(place + 1);
  return make(
    "a",
    { class: "step", href: linkTo(tree, child), "aria-keyshortcuts": shortcut },
    ...key,
    make("span", { class: "label" }, label),
    ...rest,
  );
}

/** @param {Report} report @param {number} node */
function showDecision(report, node) {
  const { tree, policies } = report;
  const infoset = tree.infoset[node];
  const moves = childrenOf(tree, node).map((child, i) => moveItem(report, child, i));
  fill(
    infosetLabel(tree, infoset),
    tree.infosetLabels ? tree.keys[infoset] : "",
    factsTable(report, infoset),
    make("ol", { class: "moves", "aria-label": "Moves" }, ...moves),
    make(
      "p",
      { class: "quiet" },
      `Value: what player_${actorOf(tree, node)} wins on average after the move, in chips, if it ` +
        "plays best from there on and all others play the policy of that line.",
    ),
    beliefs(report, node, policies),
  );
}

/** Reach probability, best response and loss of each policy here.
 * @param {Report} report @param {number} infoset @returns {HTMLElement} */
function factsTable({ tree, policies }, infoset) {
  const head = ["policy", "hands that arrive", "best", "loses, chips per hand"];
  const rows = policies.map((policy) => {
    const { reach, losses } = tablesOf(policy);
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, nameTag(policy)),
      make("td", {}, data(reach[infoset], share(reach[infoset]))),
      make("td", { class: "best" }, bestText(tree, policy, infoset)),
      make("td", {}, data(losses[infoset])),
    );
  });
  return make(
    "table",
    { class: "facts", "aria-label": "The policies at this information set" },
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows),
  );
}

/** A move: the way to it, and a bar for each policy.
 * @param {Report} report @param {number} child @param {number} place @returns {HTMLElement} */
function moveItem({ tree, policies }, child, place) {
  const { label, slot } = stepTo(tree, child);
  return make(
    "li",
    {},
    stepLink(tree, child, place, label),
    make("ul", { "aria-label": label }, ...policies.map((policy) => bar(policy, slot))),
  );
}

/** @param {Policy} policy @param {number} slot @returns {HTMLElement} */
function bar(policy, slot) {
  const { probabilities, values, costs } = tablesOf(policy);
  const track = make("span", { class: "track", "aria-hidden": "true" }, make("i"));
  track.style.setProperty("--share", String(probabilities[slot]));
  const isKnown = !Number.isNaN(values[slot]);
  const value = isKnown
    ? make(
        "span",
        { class: "value" },
        make("small", {}, "value "),
        data(values[slot], signed(values[slot], 3)),
      )
    : make("span", { class: "value" }, make("small", {}, "never reached"));
  const isBest = costs[slot] === 0;
  const verdict = isBest
    ? make("span", { class: "mark best" }, "best")
    : make("span", { class: "mark" }, isKnown ? `costs ${smallText(costs[slot])}` : "");
  return make(
    "li",
    { class: colourOf(policy), "data-policy": policy.index, "data-slot": slot },
    nameTag(policy),
    track,
    make("span", { class: "odds" }, data(probabilities[slot], share(probabilities[slot]))),
    value,
    verdict,
  );
}

/** @param {number} cost above 0 @returns {string} "0.058", "<0.001" */
const smallText = (cost) => (cost < 0.001 ? "<0.001" : cost.toFixed(3));

/** The histories that the player cannot tell apart, and how likely each is under each policy.
 * @param {Report} report @param {number} node @param {Policy[]} policies @returns {HTMLElement} */
function beliefs({ tree }, node, policies) {
  const members = membersOfInfoset(tree, tree.infoset[node]);
  const belief = (/** @type {Policy} */ policy, /** @type {number} */ member) =>
    tablesOf(policy).beliefs[tree.decision[member]];
  const likely = members
    .sort((a, b) => (belief(policies[0], b) || 0) - (belief(policies[0], a) || 0))
    .slice(0, MOST_MEMBERS);
  const steps = different(tree, members);
  const rows = likely.map((member) =>
    make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        make(
          "a",
          { href: linkTo(tree, member), "aria-current": member === node && "true" },
          steps(member) || "this one",
        ),
      ),
      ...policies.map((policy) => {
        const p = belief(policy, member);
        return make("td", {}, Number.isNaN(p) ? "–" : data(p, share(p)));
      }),
    ),
  );
  const rest = members.length - rows.length;
  const table = make(
    "table",
    {},
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        make("td"),
        ...policies.map((policy) => make("th", { scope: "col" }, nameTag(policy))),
      ),
    ),
    make("tbody", {}, ...rows),
  );
  const player = `player_${actorOf(tree, node)}`;
  const count = plural(members.length, "history", "histories");
  return make(
    "details",
    { class: "beliefs", open: true },
    make("summary", {}, `What ${player} cannot see: ${count}, and how likely under each policy`),
    make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Histories" }, table),
    ...(rest > 0 ? [make("p", { class: "quiet" }, `and ${rest} less likely ones`)] : []),
  );
}

/** The steps by which a member of an information set differs from the others, as text.
 * @param {Tree} tree @param {number[]} members @returns {(member: number) => string} */
function different(tree, members) {
  const paths = new Map(
    members.map((member) => [member, pathTo(tree, member).map((at) => stepText(tree, at))]),
  );
  const all = [...paths.values()];
  const longest = Math.max(...all.map((path) => path.length));
  const differing = range(0, longest).filter((i) => all.some((path) => path[i] !== all[0][i]));
  return (member) => {
    const path = paths.get(member) ?? [];
    return differing.flatMap((i) => (path[i] === undefined ? [] : [path[i]])).join(", ");
  };
}

/** @param {Report} report @param {(node: number) => void} go */
function startSearch({ tree, policies }, go) {
  const input = /** @type {HTMLInputElement} */ (byId("search"));
  const matches = () => (input.value.trim() ? ranked(tree, input.value) : []);
  const find = () => {
    const found = matches();
    const items = found.slice(0, MOST_RESULTS).map((infoset) => {
      const node = likeliestNode(tree, policies[0], infoset);
      return make("li", {}, make("a", { href: linkTo(tree, node) }, infosetLabel(tree, infoset)));
    });
    byId("results").replaceChildren(...items);
    byId("results-count").textContent = input.value.trim() ? foundText(found.length) : "";
  };
  input.addEventListener("input", find);
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const [first] = matches();
    if (first !== undefined) go(likeliestNode(tree, policies[0], first));
  });
  byId("results").addEventListener("click", (event) => {
    if (!(event.target instanceof HTMLAnchorElement)) return;
    input.value = "";
    setTimeout(find); // the link is followed first
  });
}

/** What a search finds, first where the text stands as it was typed.
 * @param {Tree} tree @param {string} text @returns {number[]} */
function ranked(tree, text) {
  const phrase = text.trim().toLowerCase();
  const isExact = (/** @type {number} */ infoset) => textOf(tree, infoset).includes(phrase);
  const all = range(0, tree.keys.length);
  const found = all.filter((infoset) => hasWords(textOf(tree, infoset), text));
  return [...found.filter(isExact), ...found.filter((infoset) => !isExact(infoset))];
}

/** @param {number} count @returns {string} */
const foundText = (count) =>
  plural(count, "information set") + (count > MOST_RESULTS ? `; ${MOST_RESULTS} shown` : "");

/** Digits take a step, U goes back up: while the keyboard is in the explorer, but not in a field.
 * @param {KeyboardEvent} event @param {Tree} tree */
function onExplorerKey(event, tree) {
  if (event.target instanceof HTMLInputElement || event.repeat) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.toLowerCase() === "u") byId("explorer-up").click();
  const child = childrenOf(tree, current())[Number(event.key) - 1];
  if (/^[1-9]$/.test(event.key) && child !== undefined) location.hash = linkTo(tree, child);
}
