// The rules of Kuhn poker, the same as in kuhn_bridge/rules.py and state.py: one table of nine
// betting histories in which everything else is looked up. check.js compares the two.

/** @typedef {0 | 1} Seat */
/** @typedef {"" | "p" | "b" | "pb" | "pp" | "bp" | "bb" | "pbp" | "pbb"} Letters */
/**
 * One row of the betting table. `after` maps a legal action to the letters it leads to; at the
 * end `stake` is what the loser pays and `winner` who gets it (null: the higher card).
 * @typedef {object} Betting
 * @property {string[]} words
 * @property {string} phase
 * @property {Seat | null} actor
 * @property {Record<number, Letters>} after
 * @property {number} stake
 * @property {Seat | null} winner
 */
/** What a player to act knows: an own card and the public history.
 * @typedef {{card: number, letters: string}} Decision */
/** A point of a hand; fewer than two cards while dealing.
 * @typedef {{readonly cards: readonly number[], readonly letters: string}} State */

export const CARDS = Object.freeze(["J", "Q", "K"]);
export const ACTIONS = Object.freeze(["CHECK_OR_CALL", "BET", "FOLD"]);
export const SEATS = Object.freeze(/** @type {Seat[]} */ ([0, 1]));
export const [CHECK_OR_CALL, BET, FOLD] = [0, 1, 2];

/** @type {Readonly<Record<string, Betting>>} */
export const BETTING = Object.freeze({
  "": decision([], "p0_act", 0, { [CHECK_OR_CALL]: "p", [BET]: "b" }),
  p: decision(["check"], "p1_act", 1, { [CHECK_OR_CALL]: "pp", [BET]: "pb" }),
  b: decision(["bet"], "p1_response", 1, { [CHECK_OR_CALL]: "bb", [FOLD]: "bp" }),
  pb: decision(["check", "bet"], "p0_response", 0, { [CHECK_OR_CALL]: "pbb", [FOLD]: "pbp" }),
  pp: ending(["check", "check"], 1, null),
  bp: ending(["bet", "fold"], 1, 0),
  bb: ending(["bet", "call"], 2, null),
  pbp: ending(["check", "bet", "fold"], 1, 1),
  pbb: ending(["check", "bet", "call"], 2, null),
});
const DEALING = decision([], "deal", null, {});
const DECISIONS = Object.keys(BETTING).filter((letters) => BETTING[letters].actor !== null);

/** The 12 information states, in the core's order.
 * @type {readonly Decision[]} */
export const INFORMATION_STATES = Object.freeze(
  DECISIONS.flatMap((letters) => CARDS.map((_, card) => Object.freeze({ card, letters }))),
);

/** @returns {State} the start of a hand, before any card. */
export const newHand = () => Object.freeze({ cards: Object.freeze([]), letters: "" });

/** @param {State} state @returns {Betting} */
export const betting = (state) => (state.cards.length < 2 ? DEALING : BETTING[state.letters]);

/** @param {State} state @returns {number[]} the cards that may be dealt next, all equally likely. */
export const undealt = (state) =>
  state.cards.length < 2 ? [0, 1, 2].filter((card) => !state.cards.includes(card)) : [];

/** @param {State} state @param {number} card @returns {State} */
export function deal(state, card) {
  if (!undealt(state).includes(card)) throw new RangeError(`card ${card} cannot be dealt here`);
  return Object.freeze({ cards: Object.freeze([...state.cards, card]), letters: state.letters });
}

/** @param {State} state @param {number} action @returns {State} */
export function act(state, action) {
  const { after, phase, words } = betting(state);
  if (!Object.hasOwn(after, action) || !Number.isInteger(action)) {
    const name = ACTIONS[action] ?? "unknown";
    throw new RangeError(`illegal action ${name} (${action}) in ${phase} after [${words}]`);
  }
  return Object.freeze({ cards: state.cards, letters: after[action] });
}

/** @param {State} state @returns {boolean} */
export const isTerminal = (state) => betting(state).phase === "terminal";

/** @param {State} state @returns {[number, number]} net chips of both; [0, 0] before the end. */
export function returns(state) {
  const { stake, winner } = betting(state);
  const first = winner === null ? state.cards[0] > state.cards[1] : winner === 0;
  if (!stake) return [0, 0];
  return first ? [stake, -stake] : [-stake, stake];
}

/** @param {State} state @returns {number} chips on the table: two antes, and what was bet. */
export const pot = (state) =>
  2 + betting(state).words.filter((word) => word === "bet" || word === "call").length;

/** The observation of `seat`: own card J Q K, history [] [check] [bet] [check, bet] finished, who acts.
 * @param {State} state @param {Seat} seat @returns {number[]} 10 zeros and ones */
export const observe = (state, seat) =>
  encode(state.cards[seat], state.letters, betting(state).actor);

/** @param {State} state @param {Seat} seat @returns {number[]} 3 zeros and ones, 1 = legal. */
export const mask = (state, seat) =>
  ACTIONS.map((_, action) =>
    Number(betting(state).actor === seat && Object.hasOwn(betting(state).after, action)),
  );

/** @param {Decision} decision @returns {number[]} the observation of the player to act, 10 numbers. */
export const observation = ({ card, letters }) => encode(card, letters, BETTING[letters].actor);

/** @param {Decision} decision @returns {number[]} */
export const legal = ({ letters }) =>
  ACTIONS.map((_, action) => Number(Object.hasOwn(BETTING[letters].after, action)));

/** @param {Decision} decision @returns {string} OpenSpiel's name of it, e.g. "2pb". */
export const informationState = ({ card, letters }) => `${card}${letters}`;

/** @param {State} state @returns {Decision} what the player to act knows: never the other card. */
export function decisionOf(state) {
  const { actor } = betting(state);
  if (actor === null) throw new RangeError(`nobody decides in ${betting(state).phase}`);
  return { card: state.cards[actor], letters: state.letters };
}

/** @param {string[]} words @param {string} phase @param {Seat | null} actor
 * @param {Record<number, Letters>} after @returns {Betting} */
function decision(words, phase, actor, after) {
  return Object.freeze({ words, phase, actor, after, stake: 0, winner: null });
}

/** @param {string[]} words @param {number} stake @param {Seat | null} winner @returns {Betting} */
function ending(words, stake, winner) {
  return Object.freeze({ words, phase: "terminal", actor: null, after: {}, stake, winner });
}

/** @param {number | undefined} card @param {string} letters @param {Seat | null} actor */
function encode(card, letters, actor) {
  const slot = DECISIONS.includes(letters) ? DECISIONS.indexOf(letters) : DECISIONS.length;
  return [...oneHot(card, 3), ...oneHot(slot, DECISIONS.length + 1), ...oneHot(actor, 2)];
}

/** @param {number | null | undefined} index @param {number} size @returns {number[]} */
const oneHot = (index, size) => Array.from({ length: size }, (_, i) => Number(i === index));
