// What the table needs to know of a game with a tree: a position is a node.

import { make } from "../dom.js";
import { linkTo, tablesOf } from "./parts.js";
import { CHANCE, actorOf, childrenOf, infosetLabel, kindOf, pathTo } from "./tree.js";
import { returnsAt, stepTo } from "./tree.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {import("./document.js").Tree} Tree */
/** @typedef {NonNullable<Policy["tables"]>} Tables */

/** @param {Tree} tree @returns {import("./play.js").Rules<number>} */
export const treeRules = (tree) => ({
  start: () => 0,
  isOver: (node) => kindOf(tree, node) === "terminal",
  actor: (node) => actorOf(tree, node),
  drawn: (node, policy) => drawnChild(tree, node, tablesOf(policy)),
  moves: (node) =>
    childrenOf(tree, node).map((child) => {
      const { label, slot } = stepTo(tree, child);
      return { label, next: child, costs: (policy) => policy.tables?.costs[slot] ?? NaN };
    }),
  situation: (node, seat) => [situationText(tree, node, seat)],
  returns: (node) => returnsAt(tree, node),
  steps: (node, seat) => treeSteps(tree, node, seat),
});

/** A child of a node, drawn by chance's or the policy's probabilities.
 * @param {Tree} tree @param {number} node @param {Tables} tables @returns {number} */
function drawnChild(tree, node, tables) {
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

/** What the person knows: "You hold K♠ to start", or "You see" and the information state string.
 * @param {Tree} tree @param {number} node @param {number} seat @returns {string} */
function situationText(tree, node, seat) {
  const label = infosetLabel(tree, tree.infoset[node]);
  return label
    .replace(`player_${seat} with `, "You hold ")
    .replace(`player_${seat} at `, "You see ");
}

/** Every step of the finished hand, chance's included.
 * @param {Tree} tree @param {number} node @param {number} seat @returns {HTMLElement[]} */
const treeSteps = (tree, node, seat) =>
  pathTo(tree, node).map((at) => {
    const { player, label } = stepTo(tree, at);
    const who = player === CHANCE ? "" : player === seat ? "you: " : `player_${player}: `;
    const link = make("a", { href: linkTo(tree, at) }, `${who}${label}`);
    return make("li", { class: player === seat ? "own" : "" }, link);
  });
