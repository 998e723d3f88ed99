// The bot's mind: how often it bets and calls, beside perfect play, and the person's best answer.

import { byId, make } from "./dom.js";
import { ACTIONS, BET, BETTING, CARDS, CHECK_OR_CALL } from "./engine.js";
import { INFORMATION_STATES, informationState } from "./engine.js";
import { CARD_NAMES, WHERE, often, word } from "./score.js";
import { capital, percent, signed } from "./text.js";
import { bestActions, replies } from "./values.js";

/** @typedef {import("./opponents.js").Opponent} Opponent */

/** The move that puts chips in: bet, or call where there is a bet.
 * @param {string} letters */
const boldMove = (letters) => (BET in BETTING[letters].after ? BET : CHECK_OR_CALL);

/** @param {Opponent} opponent @param {any} game as the server describes it */
export function showMind(opponent, game) {
  const { actionValues, best } = replies(opponent.rows);
  const nashConv = Math.max(0, best[0] + best[1]);
  byId("about").textContent = opponent.about;
  byId("nash-conv").textContent = nashConv.toFixed(4);
  byId("uniform").textContent = `coin flips ${game.uniform_nash_conv.toFixed(3)}`;
  const [first, second] = best.map((value) => signed(value, 3));
  byId("best-values").textContent =
    `Won from it: ${first} in the first seat, ${second} in the second`;
  const meter = /** @type {HTMLMeterElement} */ (byId("nash-conv-meter"));
  meter.max = game.uniform_nash_conv;
  meter.value = nashConv;
  meter.setAttribute("aria-label", `${nashConv.toFixed(4)} chips`);
  const tables = Object.keys(WHERE).map((letters) =>
    groupTable(letters, opponent.rows, actionValues, game.equilibrium),
  );
  byId("rows").replaceChildren(...tables);
}

/** @param {string} letters @param {number[][]} rows
 * @param {Record<string, (number | null)[]>} actionValues
 * @param {import("./score.js").Bands} bands */
function groupTable(letters, rows, actionValues, bands) {
  const table = document.createElement("table");
  table.createCaption().textContent = capital(WHERE[letters]);
  table.append(...["rank", "track", "share", "reply"].map((name) => make("col", { class: name })));
  const head = table.createTHead().insertRow();
  head.append(
    columnHead("", 1),
    columnHead(`bot ${word(letters, boldMove(letters))}s`, 2),
    columnHead("you", 1),
  );
  const body = table.createTBody();
  INFORMATION_STATES.forEach((decision, index) => {
    if (decision.letters !== letters) return;
    const name = informationState(decision);
    body.append(stateRow(decision, rows[index], bands[name], actionValues[name]));
  });
  return table;
}

/** @param {import("./engine.js").Decision} decision @param {number[]} row
 * @param {Record<string, [number, number]>} bands @param {(number | null)[]} values */
function stateRow({ card, letters }, row, bands, values) {
  const move = boldMove(letters);
  const [low, high] = bands[ACTIONS[move]];
  const [fill, band] = [make("i"), make("b")];
  fill.style.setProperty("--p", String(row[move]));
  band.style.setProperty("--low", String(low));
  band.style.setProperty("--high", String(high));
  const rank = { class: `rank ${CARDS[card]}`, scope: "row", "aria-label": CARD_NAMES[card] };
  const share = `${percent(row[move])}, perfect play ${often([low, high])}`;
  const best = bestActions(values);
  const answer = best.length > 1 ? "either" : word(letters, best[0]);
  return make(
    "tr",
    { "data-state": informationState({ card, letters }), "data-probabilities": row.join(" ") },
    make("th", rank, CARDS[card]),
    make("td", { class: "track" }, fill, band),
    make("td", { class: "share", "aria-label": share }, percent(row[move])),
    make("td", { class: "reply", "aria-label": `your best move here: ${answer}` }, answer),
  );
}

/** @param {string} text @param {number} colspan */
const columnHead = (text, colspan) =>
  text ? make("th", { colspan, scope: "col" }, text) : make("td", { colspan });
