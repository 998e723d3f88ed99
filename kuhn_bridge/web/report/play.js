// The table: a person in one seat, a policy in all others; what each move cost; totals.

import { byId, make } from "../dom.js";
import { WITHIN_95, estimate, sum } from "../estimate.js";
import { chips, plural, signed } from "../text.js";
import { definitions, referenceOf } from "./parts.js";
import { handsRules } from "./play_hands.js";
import { treeRules } from "./play_tree.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {ReturnType<typeof import("./document.js").decodeDocument>} Report */

/** What a kind of game knows about a hand in progress; a position is what it likes.
 * @template Position
 * @typedef {object} Rules
 * @property {() => Position} start before the deal
 * @property {(position: Position) => boolean} isOver
 * @property {(position: Position) => number} actor the player to act, or CHANCE
 * @property {(position: Position, policy: Policy) => Position} drawn the next position: chance's
 *   step, or that of the policy
 * @property {(position: Position) => Move<Position>[]} moves of the player to act
 * @property {(position: Position, seat: number) => (Node | string)[]} situation what a person sees
 * @property {(position: Position) => number[]} returns what each player wins at the end
 * @property {(position: Position, seat: number) => HTMLElement[]} steps of the finished hand */

/** A move, and what it costs against a policy: NaN where the policy never leads there.
 * @template Position
 * @typedef {{label: string, next: Position, costs: (policy: Policy) => number}} Move */

/** One finished hand: chips won, and what its moves cost against the opponent and the reference.
 * @typedef {{chips: number, cost: number, referenceCost: number}} Hand */
/** @typedef {{report: Report, rules: Rules<any>, opponent: Policy, reference: Policy | null,
 *   seat: number, position: any, moves: Move<any>[], hands: Map<Policy, Hand[]>}} Table */

/** @param {Report} report @returns {boolean} whether the game can be played on the page */
export function startPlay(report) {
  const rules = rulesOf(report);
  if (!rules) return false;
  const { policies } = report;
  const reference = referenceOf(policies);
  /** @type {Table} */
  const table = {
    report,
    rules,
    opponent: policies[0],
    reference,
    seat: report.game.num_players - 1, // so that alternating starts in the first seat
    position: rules.start(),
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
  return true;
}

/** @param {Report} report @returns {Rules<any> | null} */
function rulesOf({ tree, hands, policies }) {
  if (tree) return treeRules(tree);
  return hands && policies.every((policy) => policy.hands) ? handsRules(hands) : null;
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
  table.position = table.rules.start();
  table.moves = [];
  advance(table, focus);
}

/** @param {Table} table @param {number} place of the person's move */
function move(table, place) {
  const made = table.rules.moves(table.position)[place];
  table.moves.push(made);
  table.position = made.next;
  advance(table);
}

/** @param {Table} table @param {boolean} [focus] */
function advance(table, focus = true) {
  const { rules, opponent, seat } = table;
  while (!rules.isOver(table.position) && rules.actor(table.position) !== seat)
    table.position = rules.drawn(table.position, opponent);
  if (rules.isOver(table.position)) finish(table);
  showTable(table, focus);
  showTotals(table);
}

/** @param {Table} table */
function finish(table) {
  const cost = (/** @type {Policy | null} */ policy) =>
    table.moves.reduce((sum, made) => sum + ((policy && made.costs(policy)) || 0), 0);
  table.hands.get(table.opponent)?.push({
    chips: table.rules.returns(table.position)[table.seat],
    cost: cost(table.opponent),
    referenceCost: cost(table.reference),
  });
}

/** @param {Table} table @param {boolean} focus */
function showTable(table, focus) {
  const { rules, position, seat } = table;
  const over = rules.isOver(position);
  byId("own-seat").textContent = `You are player_${seat} against ${table.opponent.name}`;
  const situation = over ? [resultText(table)] : rules.situation(position, seat);
  byId("situation").replaceChildren(...situation);
  byId("judged").replaceChildren(...table.moves.map((made) => judged(table, made)));
  const buttons = over ? [] : rules.moves(position).map(moveButton);
  byId("own-moves").replaceChildren(...buttons);
  byId("deal").hidden = !over;
  byId("hand").hidden = !over;
  if (over) byId("hand-steps").replaceChildren(...rules.steps(position, seat));
  if (focus) (over ? byId("deal") : buttons[0])?.focus();
}

/** @param {Table} table @returns {string} */
function resultText({ rules, position, seat }) {
  const won = rules.returns(position)[seat];
  return `The hand is over: you ${won < 0 ? "lose" : "win"} ${chips(Math.abs(won))}.`;
}

/** @param {Move<any>} move @param {number} place */
const moveButton = ({ label }, place) =>
  make(
    "button",
    { type: "button", "data-child": place, "aria-keyshortcuts": place < 9 && String(place + 1) },
    make("span", {}, label),
    ...(place < 9 ? [make("kbd", { "aria-hidden": "true" }, String(place + 1))] : []),
  );

/** What a move cost, against this opponent and against the reference.
 * @param {Table} table @param {Move<any>} made @returns {HTMLElement} */
function judged({ opponent, reference }, made) {
  const costs = [costText(made.costs(opponent), "against this opponent")];
  if (reference && reference !== opponent)
    costs.push(costText(made.costs(reference), `against ${reference.name}`));
  const worst = Math.max(
    ...[opponent, reference].map((policy) => (policy && made.costs(policy)) || 0),
  );
  return make(
    "li",
    { class: worst >= 0.005 ? "costly" : "free" },
    make("b", {}, made.label),
    ` cost ${costs.join(", ")}`,
  );
}

/** @param {number} cost @param {string} against @returns {string} */
const costText = (cost, against) =>
  Number.isNaN(cost)
    ? `an unknown amount ${against}, which never arrives here`
    : `${chips(cost)} ${against}`;

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
