// The table: a person in one seat, a policy in all others; what each move cost; totals.

import { byId, make } from "../dom.js";
import { WITHIN_95, estimate, sum } from "../estimate.js";
import { chips, plural, signed } from "../text.js";
import { definitions, linkTo, referenceOf, tablesOf } from "./parts.js";
import { CHANCE, actorOf, childrenOf, infosetLabel, kindOf, pathTo } from "./tree.js";
import { returnsAt, stepTo } from "./tree.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {import("./document.js").Tree} Tree */
/** @typedef {ReturnType<typeof import("./document.js").decodeDocument>} Report */
/** @typedef {NonNullable<Policy["tables"]>} Tables */

/** One finished hand: chips won, and what its moves cost against the opponent and the reference.
 * @typedef {{chips: number, cost: number, referenceCost: number}} Hand */
/** @typedef {{report: Report, opponent: Policy, reference: Policy | null, seat: number,
 *   node: number, moves: {infoset: number, slot: number}[],
 *   hands: Map<Policy, Hand[]>}} Table */

/** @param {Report} report */
export function startPlay(report) {
  const { policies } = report;
  const reference = referenceOf(policies);
  /** @type {Table} */
  const table = {
    report,
    opponent: policies[0],
    reference,
    seat: report.game.num_players - 1, // so that alternating starts in the first seat
    node: 0,
    moves: [],
    hands: new Map(policies.map((policy) => [policy, []])),
  };
  const menu = /** @type {HTMLSelectElement} */ (byId("opponent"));
  menu.replaceChildren(
    ...policies.map(({ name, role }) => new Option(role ? `${name} (${role})` : name)),
  );
  menu.addEventListener("change", () => {
    table.opponent = policies[menu.selectedIndex];
    deal(table);
  });
  byId("seats").append(...seatInputs(report.game.num_players));
  byId("seats").addEventListener("change", () => deal(table));
  byId("deal").addEventListener("click", () => deal(table));
  byId("own-moves").addEventListener("click", (event) => {
    const button = /** @type {HTMLElement} */ (event.target).closest("button");
    if (button && event.detail < 2) move(table, Number(button.dataset.child));
  });
  byId("play").addEventListener("keydown", onTableKey);
  deal(table, false);
}

/** @param {number} players @returns {HTMLElement[]} */
function seatInputs(players) {
  const choices = Array.from({ length: players }, (_, seat) => [String(seat), `player_${seat}`]);
  if (players > 1) choices.push(["alternate", "Alternate"]);
  return choices.map(([value, text], i) =>
    make(
      "label",
      {},
      make("input", { type: "radio", name: "seat", value, checked: i === choices.length - 1 }),
      make("span", {}, text),
    ),
  );
}

/** Start a hand, and let chance and the others play until the person is to act.
 * @param {Table} table @param {boolean} [focus] */
function deal(table, focus = true) {
  const chosen = /** @type {HTMLInputElement} */ (document.querySelector("[name=seat]:checked"))
    .value;
  table.seat =
    chosen === "alternate" ? (table.seat + 1) % table.report.game.num_players : Number(chosen);
  table.node = 0;
  table.moves = [];
  advance(table, focus);
}

/** @param {Table} table @param {number} child the person's move */
function move(table, child) {
  const { tree } = table.report;
  table.moves.push({ infoset: tree.infoset[table.node], slot: stepTo(tree, child).slot });
  table.node = child;
  advance(table);
}

/** @param {Table} table @param {boolean} [focus] */
function advance(table, focus = true) {
  const { tree } = table.report;
  while (kindOf(tree, table.node) !== "terminal" && actorOf(tree, table.node) !== table.seat)
    table.node = drawn(tree, table.node, tablesOf(table.opponent));
  if (kindOf(tree, table.node) === "terminal") finish(table);
  showTable(table, focus);
  showTotals(table);
}

/** A child of a node, drawn by chance's or the policy's probabilities.
 * @param {Tree} tree @param {number} node @param {Tables} tables @returns {number} */
function drawn(tree, node, tables) {
  let left = Math.random();
  const children = childrenOf(tree, node);
  const possible = children.filter((child) => probabilityOf(tree, child, tables) > 0);
  for (const child of possible) {
    left -= probabilityOf(tree, child, tables);
    if (left < 0) return child;
  }
  return possible[possible.length - 1]; // rounding
}

/** @param {Tree} tree @param {number} child @param {Tables} tables */
function probabilityOf(tree, child, tables) {
  const { player, probability, slot } = stepTo(tree, child);
  return player === CHANCE ? probability : tables.probabilities[slot];
}

/** @param {Policy | null} policy @param {{slot: number}} made
 * @returns {number} NaN where the policy never leads there */
const costOf = (policy, { slot }) => policy?.tables?.costs[slot] ?? NaN;

/** @param {Table} table */
function finish(table) {
  const cost = (/** @type {Policy | null} */ policy) =>
    table.moves.reduce((sum, made) => sum + (costOf(policy, made) || 0), 0);
  table.hands.get(table.opponent)?.push({
    chips: returnsAt(table.report.tree, table.node)[table.seat],
    cost: cost(table.opponent),
    referenceCost: cost(table.reference),
  });
}

/** @param {Table} table @param {boolean} focus */
function showTable(table, focus) {
  const { tree } = table.report;
  const over = kindOf(tree, table.node) === "terminal";
  byId("own-seat").textContent = `You are player_${table.seat} against ${table.opponent.name}`;
  byId("situation").textContent = over ? resultText(table) : situationText(table);
  byId("judged").replaceChildren(...table.moves.map((made) => judged(table, made)));
  const buttons = over
    ? []
    : childrenOf(tree, table.node).map((child, i) => moveButton(tree, child, i));
  byId("own-moves").replaceChildren(...buttons);
  byId("deal").hidden = !over;
  byId("hand").hidden = !over;
  if (over) byId("hand-steps").replaceChildren(...steps(table));
  if (focus) (over ? byId("deal") : buttons[0])?.focus();
}

/** What the person knows: "You hold K♠ to start", or "You see" and the information state string.
 * @param {Table} table @returns {string} */
function situationText({ report: { tree }, node, seat }) {
  const label = infosetLabel(tree, tree.infoset[node]);
  return label
    .replace(`player_${seat} with `, "You hold ")
    .replace(`player_${seat} at `, "You see ");
}

/** @param {Table} table @returns {string} */
function resultText({ report, node, seat }) {
  const won = returnsAt(report.tree, node)[seat];
  return `The hand is over: you ${won < 0 ? "lose" : "win"} ${chips(Math.abs(won))}.`;
}

/** @param {Tree} tree @param {number} child @param {number} place */
const moveButton = (tree, child, place) =>
  make(
    "button",
    { type: "button", "data-child": child, "aria-keyshortcuts": place < 9 && String(place + 1) },
    make("span", {}, stepTo(tree, child).label),
    ...(place < 9 ? [make("kbd", { "aria-hidden": "true" }, String(place + 1))] : []),
  );

/** What a move cost, against this opponent and against the reference.
 * @param {Table} table @param {{infoset: number, slot: number}} made @returns {HTMLElement} */
function judged({ report, opponent, reference }, made) {
  const { tree } = report;
  const label = tree.labels[tree.slotLabel[made.slot]];
  const costs = [costText(costOf(opponent, made), "against this opponent")];
  if (reference && reference !== opponent)
    costs.push(costText(costOf(reference, made), `against ${reference.name}`));
  const worst = Math.max(...[opponent, reference].map((policy) => costOf(policy, made) || 0));
  return make(
    "li",
    { class: worst >= 0.005 ? "costly" : "free" },
    make("b", {}, label),
    ` cost ${costs.join(", ")}`,
  );
}

/** @param {number} cost @param {string} against @returns {string} */
const costText = (cost, against) =>
  Number.isNaN(cost)
    ? `an unknown amount ${against}, which never arrives here`
    : `${chips(cost)} ${against}`;

/** Every step of the finished hand, chance's included.
 * @param {Table} table @returns {HTMLElement[]} */
const steps = ({ report, node, seat }) =>
  pathTo(report.tree, node).map((at) => {
    const { player, label } = stepTo(report.tree, at);
    const who = player === CHANCE ? "" : player === seat ? "you: " : `player_${player}: `;
    const link = make("a", { href: linkTo(report.tree, at) }, `${who}${label}`);
    return make("li", { class: player === seat ? "own" : "" }, link);
  });

/** @param {Table} table */
function showTotals({ hands, opponent, reference, seat }) {
  const played = hands.get(opponent) ?? [];
  const { n, total, mean, error, totalError } = estimate(played.map(({ chips }) => chips));
  const cost = sum(played.map(({ cost }) => cost));
  const referenceCost = sum(played.map(({ referenceCost }) => referenceCost));
  const seatValues = opponent.seats[seat];
  byId("totals-title").textContent = `Against ${opponent.name}: ${plural(n, "hand")}`;
  const beside = reference !== opponent && reference;
  /** @type {[string, string][]} */
  const rows = [
    ["Your chips", withMargin(total, totalError, 0)],
    ["Per hand", n ? withMargin(mean, error, 2) : "–"],
    ["Your moves cost against this opponent", cost.toFixed(2)],
  ];
  if (beside) rows.push([`Your moves cost against ${beside.name}`, referenceCost.toFixed(2)]);
  rows.push(["A best response wins per hand in this seat", signed(seatValues.best_response, 3)]);
  if (beside)
    rows.push([`${beside.name} wins per hand in this seat`, signed(seatValues.reference ?? 0, 3)]);
  byId("totals").replaceChildren(...definitions(rows));
}

/** @param {number} value @param {number | null} error @param {number} digits
 * @returns {string} a value and half the width of its 95% interval */
const withMargin = (value, error, digits) =>
  `${signed(value, Number.isInteger(value) ? digits : Math.max(digits, 2))}` +
  (error === null ? "" : ` ± ${(WITHIN_95 * error).toFixed(Math.max(digits, 1))}`);

/** Digits choose a move, N deals: while the keyboard is at the table.
 * @param {KeyboardEvent} event */
function onTableKey(event) {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof HTMLSelectElement) return;
  const deal = byId("deal");
  if (event.key.toLowerCase() === "n" && !deal.hidden) deal.click();
  if (/^[1-9]$/.test(event.key))
    /** @type {HTMLElement | undefined} */ (
      byId("own-moves").children[Number(event.key) - 1]
    )?.click();
}
