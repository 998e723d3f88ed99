// Action values against a known policy: exact, by walking all hands of an information state at once.

import { ACTIONS, CARDS, INFORMATION_STATES, SEATS } from "./engine.js";
import * as engine from "./engine.js";

/** @typedef {import("./engine.js").Seat} Seat */
/** @typedef {import("./engine.js").State} State */
/** @typedef {{state: State, weight: number}[]} Hands of one information state */
/** @typedef {readonly number[][]} Rows the 12 rows of 3 probabilities of a policy */

const TOLERANCE = 1e-6; // chips; smaller differences are rounding of a float32 network

/** The value in chips of each action at an information state, if the other seat plays `rows` and the
 * player then plays a best response; and the value of a best response per seat.
 * Where `rows` never lets the player arrive, every action has the value 0.
 * @param {Rows} rows
 * @returns {{actionValues: Record<string, (number | null)[]>, best: number[]}} */
export function replies(rows) {
  /** @type {Record<string, (number | null)[]>} */ const actionValues = {};

  /** @param {Hands} hands @param {Seat} seat @returns {number} */
  function walk(hands, seat) {
    const { actor, after, phase } = engine.betting(hands[0].state);
    if (phase === "terminal")
      return total(hands.map(({ state, weight }) => weight * engine.returns(state)[seat]));
    const values = ACTIONS.map((_, action) => {
      if (!(action in after)) return null;
      const shares = hands.map(({ state }) => (actor === seat ? 1 : rowAt(rows, state)[action]));
      return walk(
        hands.map(({ state, weight }, i) => ({
          state: engine.act(state, action),
          weight: weight * shares[i],
        })),
        seat,
      );
    });
    if (actor !== seat) return total(values.map((value) => value ?? 0));
    const reach = total(hands.map(({ weight }) => weight)) || 1;
    const name = engine.informationState(engine.decisionOf(hands[0].state));
    actionValues[name] = values.map((value) => (value === null ? null : value / reach));
    return Math.max(...values.filter((value) => value !== null));
  }

  const best = SEATS.map((seat) => total(CARDS.map((_, card) => walk(deals(seat, card), seat))));
  return { actionValues, best };
}

/** @param {(number | null)[]} values of each action @returns {number[]} the best actions */
export function bestActions(values) {
  const top = Math.max(...values.filter((value) => value !== null));
  return ACTIONS.flatMap((_, action) =>
    (values[action] ?? -Infinity) > top - TOLERANCE ? [action] : [],
  );
}

/** The variance of a player's chips per hand if both seats play `rows`; the same for both seats.
 * @param {Rows} rows @returns {number} */
export function variance(rows) {
  /** @param {State} state @param {number} weight @returns {[number, number][]} weight, chips */
  const ends = (state, weight) =>
    engine.isTerminal(state)
      ? [[weight, engine.returns(state)[0]]]
      : Object.keys(engine.betting(state).after).flatMap((action) =>
          ends(engine.act(state, Number(action)), weight * rowAt(rows, state)[Number(action)]),
        );
  const all = CARDS.flatMap((_, card) => deals(0, card)).flatMap((hand) =>
    ends(hand.state, hand.weight),
  );
  const mean = total(all.map(([weight, chips]) => weight * chips));
  return total(all.map(([weight, chips]) => weight * (chips - mean) ** 2));
}

/** @param {Seat} seat @param {number} card @returns {Hands} the deals in which `seat` holds `card` */
const deals = (seat, card) =>
  CARDS.flatMap((_, other) => {
    if (other === card) return [];
    const cards = seat === 0 ? [card, other] : [other, card];
    return [{ state: cards.reduce(engine.deal, engine.newHand()), weight: 1 / 6 }];
  });

/** @param {Rows} rows @param {State} state @returns {number[]} what the player to act does there */
export function rowAt(rows, state) {
  const { card, letters } = engine.decisionOf(state);
  return rows[INFORMATION_STATES.findIndex((d) => d.card === card && d.letters === letters)];
}

/** @param {number[]} values */
const total = (values) => values.reduce((sum, value) => sum + value, 0);
