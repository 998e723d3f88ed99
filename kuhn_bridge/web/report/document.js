// The document that Python wrote: its arrays decoded, its tree made walkable.

const TYPES = {
  float32: Float32Array,
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  int32: Int32Array,
};

/** @typedef {keyof typeof TYPES} Dtype */
/** @typedef {{dtype: Dtype, data: string}} Encoded */
/** @typedef {InstanceType<typeof TYPES[Dtype]>} Numbers */
/** What `algorithms.nashconv.action_values` has of one policy; slots are legal actions.
 * @typedef {{probabilities: Numbers, values: Numbers, costs: Numbers, reach: Numbers,
 *   losses: Numbers, beliefs: Numbers, ranking: Numbers}} Tables */
/** @typedef {{name: string, role: string | null, index: number, nash_conv?: number,
 *   nash_conv_at_least?: number, exploitability?: number, exploitability_at_least?: number,
 *   interval: [number, number] | null, gains: number[], values: number[], best_values: number[],
 *   verdict: string, curve: {steps: number[], last: number[], average: number[]} | null,
 *   notes: Record<string, Record<string, string>>, losses: any[],
 *   seats: {best_response: number, reference: number | null}[], tables: Tables | null,
 *   hands: {probability: Numbers, grid: Numbers | null, arriving: Numbers | null,
 *   losses: Numbers, cost: Numbers} | null}} Policy */

/** @param {Encoded} encoded @returns {Numbers} */
export function decodeArray({ dtype, data }) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[dtype](bytes.buffer);
}

/** @param {any} raw @param {number} index @returns {Policy} */
function decodePolicy(raw, index) {
  const decoded = Object.entries(raw.tables ?? {}).map(([name, table]) => [
    name,
    decodeArray(table),
  ]);
  const hands = Object.entries(raw.hands ?? {}).map(([name, table]) => [
    name,
    table && decodeArray(table),
  ]);
  return {
    ...raw,
    index,
    tables: raw.tables && Object.fromEntries(decoded),
    hands: raw.hands && Object.fromEntries(hands),
  };
}

/** @param {any} raw as `JSON.parse` has it */
export function decodeDocument(raw) {
  if (raw.format !== "kuhn-bridge-report" || raw.version !== 1)
    throw new Error(`not a report of version 1: ${raw.format} ${raw.version}`);
  return {
    mode: /** @type {"report" | "play"} */ (raw.mode),
    game: raw.game,
    madeBy: /** @type {Record<string, string>} */ (raw.made_by),
    withoutTree: /** @type {string} */ (raw.without_tree),
    policies: /** @type {Policy[]} */ (raw.policies.map(decodePolicy)),
    tree: raw.tree && makeTree(raw.tree),
    hands: raw.hands && makeHands(raw.hands),
  };
}

/** @param {any} raw */
function makeHands(raw) {
  return {
    nodes:
      /** @type {{player: number, label: string, actions: string[], children: number[]}[]} */ (
        raw.nodes
      ),
    rules: /** @type {{fold: boolean, payoff: number[]}[]} */ (raw.rules),
    board: /** @type {string[]} */ (raw.board),
    pot: /** @type {number} */ (raw.pot),
    labels: /** @type {string[]} */ (raw.labels),
    cells: /** @type {string[]} */ (raw.cells),
    cell: raw.cell && decodeArray(raw.cell),
    cards: decodeArray(raw.cards),
    weight: decodeArray(raw.weight),
    order: decodeArray(raw.order),
    strength: decodeArray(raw.strength),
    firstEdge: starts(
      raw.nodes.map((/** @type {any} */ { actions }) => actions.length),
      0,
    ),
  };
}

/** @typedef {ReturnType<typeof makeHands>} Hands */

/** @param {any} raw */
function makeTree(raw) {
  const children = decodeArray(raw.children);
  const infoset = decodeArray(raw.infoset);
  const firstChild = starts(children, 1);
  const slots = decodeArray(raw.slots);
  const outcomes = {
    action: decodeArray(raw.outcomes.action),
    probability: decodeArray(raw.outcomes.probability),
    label: decodeArray(raw.outcomes.label),
  };
  return {
    infoset,
    firstChild,
    outcomes,
    parent: parents(firstChild),
    ...ranks(children, infoset),
    ...membersOf(infoset, slots.length),
    firstSlot: starts(slots, 0),
    owner: decodeArray(raw.owner),
    keys: /** @type {string[]} */ (raw.keys),
    infosetLabels: /** @type {string[] | null} */ (raw.infoset_labels),
    slotAction: decodeArray(raw.slot_action),
    slotLabel: decodeArray(raw.slot_label),
    labels: /** @type {string[]} */ (raw.labels),
    returns: /** @type {number[][]} */ (raw.returns),
    returnIndex: decodeArray(raw.return_index),
  };
}

/** @typedef {ReturnType<typeof makeTree>} Tree */

/** Where each group of `counts` begins, and at the end where all end.
 * @param {Numbers | number[]} counts @param {number} start @returns {Int32Array} */
export function starts(counts, start) {
  const found = new Int32Array(counts.length + 1);
  found[0] = start;
  for (let i = 0; i < counts.length; i++) found[i + 1] = found[i] + counts[i];
  return found;
}

/** @param {Int32Array} firstChild @returns {Int32Array} -1 at the root */
function parents(firstChild) {
  const found = new Int32Array(firstChild.length - 1).fill(-1);
  for (let node = 0; node < found.length; node++)
    found.fill(node, firstChild[node], firstChild[node + 1]);
  return found;
}

/** Each node's place in arrays that have decisions, terminals or chance outcomes alone.
 * @param {Numbers} children @param {Numbers} infoset */
function ranks(children, infoset) {
  const [decision, terminal, firstOutcome] = [0, 0, 0].map(() => new Int32Array(children.length));
  let [decisions, terminals, outcomes] = [0, 0, 0];
  for (let node = 0; node < children.length; node++) {
    if (infoset[node] >= 0) decision[node] = decisions++;
    else if (children[node] === 0) terminal[node] = terminals++;
    else {
      firstOutcome[node] = outcomes;
      outcomes += children[node];
    }
  }
  return { decision, terminal, firstOutcome };
}

/** The nodes of each information set, in their order.
 * @param {Numbers} infoset @param {number} count */
function membersOf(infoset, count) {
  const sizes = new Int32Array(count);
  for (const i of infoset) if (i >= 0) sizes[i]++;
  const firstMember = starts(sizes, 0);
  const next = firstMember.slice();
  const members = new Int32Array(firstMember[count]);
  infoset.forEach((/** @type {number} */ i, /** @type {number} */ node) => {
    if (i >= 0) members[next[i]++] = node;
  });
  return { members, firstMember };
}
