// What the table needs to know of a poker endgame: a position is two hands and a public node.

import { make } from "../dom.js";
import { cardTag, cardsOf, probability } from "./hands.js";
import { CHANCE } from "./tree.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {import("./document.js").Hands} Hands */

/** `path` has the nodes from the root on, and `taken` the place of the action that was taken at
 * each of them; `end` is the rule by which the hand ends, or -1.
 * @typedef {{held: number[], path: number[], taken: number[], end: number}} Position */

/** @param {Hands} hands @returns {import("./play.js").Rules<Position>} */
export const handsRules = (hands) => ({
  start: () => ({ held: [], path: [0], taken: [], end: -1 }),
  isOver: ({ end }) => end >= 0,
  actor: ({ held, path }) => (held.length ? hands.nodes[lastOf(path)].player : CHANCE),
  drawn: (position, policy) =>
    position.held.length
      ? positionAfter(hands, position, drawnAction(hands, position, policy))
      : { ...position, held: dealtHands(hands) },
  moves: (position) => {
    const node = lastOf(position.path);
    const hand = position.held[hands.nodes[node].player];
    return hands.nodes[node].actions.map((label, k) => ({
      label,
      next: positionAfter(hands, position, k),
      costs: (policy) =>
        policy.hands?.cost[(hands.firstEdge[node] + k) * hands.labels.length + hand] ?? NaN,
    }));
  },
  situation: ({ held, path }, seat) => [
    cardLine("Board", hands.board.map(cardTag)),
    cardLine("You hold", cardsOf(hands.labels[held[seat]])),
    make("span", {}, `You act ${actedText(hands.nodes[lastOf(path)].label, hands.pot)}.`),
  ],
  returns: (position) => endReturns(hands, position),
  steps: (position, seat) => handSteps(hands, position, seat),
});

/** @param {number[]} numbers */
const lastOf = (numbers) => numbers[numbers.length - 1];

/** @param {string} label "to start", "after check" @param {number} pot @returns {string} */
const actedText = (label, pot) =>
  label === "to start" ? `first, with ${pot} chips in the pot` : label;

/** @param {string} text @param {HTMLElement[]} cards */
const cardLine = (text, cards) => make("span", { class: "cards" }, `${text} `, ...cards);

/** The position after an action of the player to act.
 * @param {Hands} hands @param {Position} position @param {number} k @returns {Position} */
function positionAfter(hands, { held, path, taken }, k) {
  const child = hands.nodes[lastOf(path)].children[k];
  const moved = { held, taken: [...taken, k] };
  if (child < 0) return { ...moved, path, end: -1 - child };
  return { ...moved, path: [...path, child], end: -1 };
}

/** A place from 0 to `count` - 1, drawn in proportion to that many weights from `start` on.
 * @param {ArrayLike<number>} weights @param {number} start @param {number} count
 * @returns {number} */
function drawnPlace(weights, start, count) {
  let total = 0;
  for (let i = 0; i < count; i++) total += weights[start + i];
  let left = Math.random() * total;
  let chosen = 0;
  for (let i = 0; i < count; i++) {
    if (weights[start + i] > 0) chosen = i;
    left -= weights[start + i];
    if (left < 0) break;
  }
  return chosen;
}

/** A hand of each player; deals whose hands share a card are drawn again.
 * @param {Hands} hands @returns {number[]} */
function dealtHands({ labels, cards, weight }) {
  const count = labels.length;
  const size = cards.length / count;
  for (;;) {
    const held = [0, 1].map((player) => drawnPlace(weight, player * count, count));
    const [own, other] = held.map((hand) => cards.slice(hand * size, (hand + 1) * size));
    if (!own.some((/** @type {number} */ card) => other.includes(card))) return held;
  }
}

/** @param {Hands} hands @param {Position} position @param {Policy} policy @returns {number} */
function drawnAction(hands, { held, path }, policy) {
  const node = lastOf(path);
  const { player, actions } = hands.nodes[node];
  const shares = actions.map((_, k) => probability(hands, policy, node, k, held[player]));
  return drawnPlace(shares, 0, shares.length);
}

/** @param {Hands} hands @param {Position} position @returns {number[]} what each player wins */
function endReturns({ rules, order }, { held, end }) {
  const { fold, payoff } = rules[end];
  const [own, other] = held.map((hand) => order[hand]);
  const won = fold || own > other ? payoff[0] : own === other ? payoff[1] : payoff[2];
  return [won, -won];
}

/** Both hands, and every action.
 * @param {Hands} hands @param {Position} position @param {number} seat @returns {HTMLElement[]} */
function handSteps(hands, { held, path, taken }, seat) {
  const who = (/** @type {number} */ player) => (player === seat ? "you" : `player_${player}`);
  const step = (/** @type {number} */ player, /** @type {(Node | string)[]} */ ...content) =>
    make(
      "li",
      { class: player === seat ? "own" : "" },
      make("span", { class: "plain" }, `${who(player)}: `, ...content),
    );
  const dealt = held.map((hand, player) => step(player, ...cardsOf(hands.labels[hand])));
  const acted = taken.map((k, i) => {
    const { player, actions } = hands.nodes[path[i]];
    return step(player, actions[k]);
  });
  return [...dealt, ...acted];
}
