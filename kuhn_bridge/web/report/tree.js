// Walking the tree: who acts, what the steps are called, and where a history leads.

/** @typedef {import("./document.js").Tree} Tree */

export const CHANCE = -1;

/** @param {Tree} tree @param {number} node @returns {"decision" | "chance" | "terminal"} */
export function kindOf(tree, node) {
  if (tree.infoset[node] >= 0) return "decision";
  return tree.firstChild[node] < tree.firstChild[node + 1] ? "chance" : "terminal";
}

/** @param {Tree} tree @param {number} node @returns {number} the player to act, or CHANCE */
export const actorOf = (tree, node) =>
  tree.infoset[node] >= 0 ? tree.owner[tree.infoset[node]] : CHANCE;

/** @param {Tree} tree @param {number} node @returns {number[]} */
export const childrenOf = (tree, node) => range(tree.firstChild[node], tree.firstChild[node + 1]);

/** @param {Tree} tree @param {number} infoset @returns {number[]} */
export const slotsOf = (tree, infoset) =>
  range(tree.firstSlot[infoset], tree.firstSlot[infoset + 1]);

/** @param {Tree} tree @param {number} infoset @returns {number[]} nodes that look alike */
export const membersOfInfoset = (tree, infoset) =>
  Array.from(tree.members.subarray(tree.firstMember[infoset], tree.firstMember[infoset + 1]));

/** Where the step to a node stands in the arrays of its parent's slots or outcomes.
 * @param {Tree} tree @param {number} node below the root */
function stepIndex(tree, node) {
  const parent = tree.parent[node];
  const place = node - tree.firstChild[parent];
  const infoset = tree.infoset[parent];
  return place + (infoset >= 0 ? tree.firstSlot[infoset] : tree.firstOutcome[parent]);
}

/** The step that leads to a node: who made it, its action ID and its label; of chance also its
 * probability, of a player its slot.
 * @param {Tree} tree @param {number} node below the root */
export function stepTo(tree, node) {
  const player = actorOf(tree, tree.parent[node]);
  const index = stepIndex(tree, node);
  const { outcomes, slotAction, slotLabel, labels } = tree;
  return player === CHANCE
    ? {
        player,
        action: outcomes.action[index],
        label: labels[outcomes.label[index]],
        probability: outcomes.probability[index],
        slot: -1,
      }
    : {
        player,
        action: slotAction[index],
        label: labels[slotLabel[index]],
        probability: NaN,
        slot: index,
      };
}

/** @param {Tree} tree @param {number} node @returns {number[]} from below the root to the node */
export function pathTo(tree, node) {
  const path = [];
  for (let at = node; at > 0; at = tree.parent[at]) path.push(at);
  return path.reverse();
}

/** @param {Tree} tree @param {number} node @returns {string} action IDs: "1,5,1" */
export const historyOf = (tree, node) =>
  pathTo(tree, node)
    .map((at) => stepTo(tree, at).action)
    .join(",");

/** @param {Tree} tree @param {string} history action IDs @returns {number | null} the node */
export function nodeAfter(tree, history) {
  let node = 0;
  for (const action of history === "" ? [] : history.split(",").map(Number)) {
    const next = childrenOf(tree, node).find((child) => stepTo(tree, child).action === action);
    if (next === undefined) return null;
    node = next;
  }
  return node;
}

/** @param {Tree} tree @param {number} node terminal @returns {number[]} what each player wins */
export const returnsAt = (tree, node) => tree.returns[tree.returnIndex[tree.terminal[node]]];

/** @param {Tree} tree @param {number} infoset @returns {string} in words, or the string */
export const infosetLabel = (tree, infoset) =>
  tree.infosetLabels?.[infoset] ??
  `player_${tree.owner[infoset]} at ${tree.keys[infoset].trim() || "''"}`;

/** @param {Tree} tree @param {number} slot @returns {string} */
export const slotLabelOf = (tree, slot) => tree.labels[tree.slotLabel[slot]];

/** @param {Tree} tree @param {number} infoset @returns {string} where a search looks */
export const textOf = (tree, infoset) =>
  `${infosetLabel(tree, infoset)}\n${tree.keys[infoset]}`.toLowerCase();

/** @param {string} text in small letters @param {string} words @returns {boolean} has all of them */
export const hasWords = (text, words) =>
  words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));

/** @param {number} start @param {number} stop @returns {number[]} */
export const range = (start, stop) => Array.from({ length: stop - start }, (_, i) => start + i);
