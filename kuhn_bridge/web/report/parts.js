// Parts that several sections show: a policy's name in its colour, exact numbers, mixes, links.

import { make } from "../dom.js";
import { figure, share } from "../text.js";
import { historyOf, membersOfInfoset, slotLabelOf, slotsOf } from "./tree.js";

/** @typedef {import("./document.js").Policy} Policy */
/** @typedef {import("./document.js").Tree} Tree */

const COLOURS = 5; // then they repeat: names tell policies apart
const VISIBLE = 0.005; // a share below this is left out of a mix
const MOST_IN_MIX = 4; // actions

/** @param {Policy} policy @returns {string} the class that has its colour */
export const colourOf = (policy) =>
  policy.role === null ? `colour-${policy.index % COLOURS}` : "colour-reference";

/** @param {Policy} policy @returns {HTMLElement} */
export const nameTag = (policy) =>
  make(
    "span",
    { class: `name ${colourOf(policy)}` },
    make("i", { class: "dot", "aria-hidden": "true" }),
    make("bdi", {}, policy.name),
    ...(policy.role ? [" ", make("small", {}, policy.role)] : []),
  );

/** A number with its exact value for machines.
 * @param {number} value @param {string} [text] @returns {HTMLElement} */
export const data = (value, text = figure(value)) => make("data", { value }, text);

/** The content of a `dl`.
 * @param {readonly (readonly [string, Node | string])[]} rows @returns {HTMLElement[]} */
export const definitions = (rows) =>
  rows.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));

/** @param {Policy} policy
 * @returns {{value: number, exact: boolean}} NashConv, or its bound; NaN if it was not measured */
export const nashConvOf = ({ nash_conv, nash_conv_at_least }) => ({
  value: nash_conv ?? nash_conv_at_least ?? NaN,
  exact: nash_conv !== undefined,
});

/** @param {Policy} policy @returns {boolean} whether there is a NashConv or a bound */
export const isMeasured = (policy) => !Number.isNaN(nashConvOf(policy).value);

/** What the explorer and the table know of a policy; reports without tree have none.
 * @param {Policy} policy */
export const tablesOf = ({ tables }) => /** @type {NonNullable<typeof tables>} */ (tables);

/** @param {Policy[]} policies @returns {Policy | null} what the others are compared with */
export const referenceOf = (policies) => policies.find(({ role }) => role !== null) ?? null;

/** @param {Tree} tree @param {Policy} policy @param {number} infoset
 * @returns {string} "call 69%, raise 31%" */
export function mixText(tree, policy, infoset) {
  const { probabilities } = tablesOf(policy);
  const played = slotsOf(tree, infoset)
    .filter((slot) => probabilities[slot] >= VISIBLE)
    .sort((a, b) => probabilities[b] - probabilities[a]);
  const texts = played
    .slice(0, MOST_IN_MIX)
    .map((slot) => `${slotLabelOf(tree, slot)} ${share(probabilities[slot])}`);
  const rest = played.length - texts.length;
  return [...texts, ...(rest ? [`${rest} more`] : [])].join(", ");
}

/** @param {Tree} tree @param {Policy} policy @param {number} infoset
 * @returns {number[]} the slots of the best actions; none where the others never arrive */
export const bestSlots = (tree, policy, infoset) =>
  slotsOf(tree, infoset).filter((slot) => policy.tables?.costs[slot] === 0);

/** @param {Tree} tree @param {Policy} policy @param {number} infoset @returns {string} */
export const bestText = (tree, policy, infoset) =>
  bestSlots(tree, policy, infoset)
    .map((slot) => slotLabelOf(tree, slot))
    .join(" or ") || "–";

/** The link to a node in the explorer.
 * @param {Tree} tree @param {number} node @returns {string} */
export const linkTo = (tree, node) => `#explorer/${historyOf(tree, node)}`;

/** The node of an information set that is most likely under a policy.
 * @param {Tree} tree @param {Policy} policy @param {number} infoset @returns {number} */
export function likeliestNode(tree, policy, infoset) {
  const { beliefs } = tablesOf(policy);
  const belief = (/** @type {number} */ node) => beliefs[tree.decision[node]] || 0;
  return membersOfInfoset(tree, infoset).reduce((best, node) =>
    belief(node) > belief(best) ? node : best,
  );
}
