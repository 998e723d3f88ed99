// The bot's mind: its 12 rows as bars beside the equilibrium band, and the best reply to them.

import { ACTIONS, BET, BETTING, CARDS, CHECK_OR_CALL } from "./engine.js";
import { INFORMATION_STATES, informationState } from "./engine.js";
import { CARD_NAMES, WHERE, capital, often, percent, signed, word } from "./score.js";

/** @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** The move that puts chips in: bet, or call where there is a bet.
 * @param {string} letters */
const boldMove = (letters) => (BET in BETTING[letters].after ? BET : CHECK_OR_CALL);

/** @param {any} bot as the server describes it @param {number[][]} rows the 12 rows it plays */
export function showMind(bot, rows) {
  const set = (id, text) => (byId(id).textContent = text);
  set("nash-conv", bot.nash_conv.toFixed(4));
  set("nash-conv-words", "NashConv: the chips a hand that best replies in both seats gain on it");
  set("uniform", `random ${bot.uniform_nash_conv.toFixed(3)}`);
  const [first, second] = bot.best_response_values.map((value) => signed(value, 3));
  set("best-reply", `Best reply: ${first} a hand going first, ${second} second`);
  const meter = /** @type {HTMLMeterElement} */ (byId("nash-conv-meter"));
  meter.max = bot.uniform_nash_conv;
  meter.value = bot.nash_conv;
  meter.setAttribute("aria-label", `NashConv ${bot.nash_conv.toFixed(4)}`);
  const tables = Object.keys(WHERE).map((letters) => groupTable(letters, bot, rows));
  byId("rows").replaceChildren(...tables);
}

/** @param {string} letters @param {any} bot @param {number[][]} rows */
function groupTable(letters, bot, rows) {
  const table = document.createElement("table");
  const where = capital(WHERE[letters]);
  table.createCaption().textContent = `${where}: ${word(letters, boldMove(letters))}s`;
  const body = table.createTBody();
  INFORMATION_STATES.forEach((decision, index) => {
    if (decision.letters === letters) body.append(stateRow(decision, bot, rows[index]));
  });
  return table;
}

/** @param {import("./engine.js").Decision} decision @param {any} bot @param {number[]} row */
function stateRow(decision, bot, row) {
  const { card, letters } = decision;
  const [name, move] = [informationState(decision), boldMove(letters)];
  const [low, high] = bot.equilibrium[name][ACTIONS[move]];
  const line = document.createElement("tr");
  line.dataset.state = name;
  line.dataset.probabilities = row.join(" ");

  const head = cell("th", CARDS[card], `rank ${CARDS[card]}`);
  head.scope = "row";
  head.setAttribute("aria-label", CARD_NAMES[card]);
  const bar = cell("td", "", "track");
  const fill = document.createElement("i");
  fill.style.setProperty("--p", String(row[move]));
  const band = document.createElement("b");
  band.style.setProperty("--low", String(low));
  band.style.setProperty("--high", String(high));
  bar.append(fill, band);
  const share = cell("td", percent(row[move]), "share");
  share.setAttribute("aria-label", `${percent(row[move])}, equilibrium ${often([low, high])}`);
  const reply = cell("td", word(letters, ACTIONS.indexOf(bot.best_responses[name])), "reply");
  reply.setAttribute("aria-label", `best reply: ${reply.textContent}`);
  line.append(head, bar, share, reply);
  return line;
}

/** @param {"td" | "th"} tag @param {string} text @param {string} className */
function cell(tag, text, className) {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = className;
  return element;
}
