// The page: deals hands, asks the person and the bot in turn, and shows the results.

import { points, showChart } from "./chart.js";
import { byId, make } from "./dom.js";
import * as engine from "./engine.js";
import * as memory from "./memory.js";
import { showMind } from "./mind.js";
import { fromFile, fromServer, rememberFile, rememberedFiles } from "./opponents.js";
import { sample, tableRows } from "./policy.js";
import { CARD_NAMES, costOf, costText, review, score, word } from "./score.js";
import { capital, chips, signed } from "./text.js";
import { rowAt, variance } from "./values.js";

/** @typedef {import("./engine.js").State} State */
/** @typedef {import("./engine.js").Seat} Seat */
/** @typedef {import("./opponents.js").Opponent} Opponent */

const ORDER = ["first", "second"];
const THINKING_TIME = 600; // milliseconds before the bot moves

const moveButtons = /** @type {HTMLButtonElement[]} */ ([
  ...document.querySelectorAll("[data-action]"),
]);
const seatInputs = /** @type {NodeListOf<HTMLInputElement>} */ (document.getElementsByName("seat"));
const nextButton = /** @type {HTMLButtonElement} */ (byId("next"));
const menu = /** @type {HTMLSelectElement} */ (byId("opponent"));
const fileInput = /** @type {HTMLInputElement} */ (byId("file"));
const rules = /** @type {HTMLDialogElement} */ (byId("rules"));

/** @type {any} */ let game; // as the server describes it
/** @type {number} */ let perHand; // the variance of a hand between perfect players
/** @type {Opponent[]} */ const opponents = [];
/** @type {Opponent} */ let opponent;
/** @type {State} */ let hand;
/** @type {Seat} */ let seat = 1; // so that alternating starts in the first seat
/** @type {{decision: import("./engine.js").Decision, action: number}[]} */ let decided = [];
/** @type {import("./score.js").Result[]} */ let results = [];
let movesHadFocus = false; // before the bot's move

/** Deal the next hand; the bot moves first if it has the first seat. */
async function nextHand() {
  const choice = [...seatInputs].find((input) => input.checked)?.value;
  seat = choice === "alternate" ? other(seat) : /** @type {Seat} */ (Number(choice));
  decided = [];
  hand = engine.newHand();
  while (engine.undealt(hand).length) hand = engine.deal(hand, pick(engine.undealt(hand)));
  byId("review").replaceChildren();
  await continueHand();
}

/** @param {number} action the person's */
async function play(action) {
  if (engine.betting(hand).actor !== seat) return;
  decided.push({ decision: engine.decisionOf(hand), action });
  hand = engine.act(hand, action);
  await continueHand();
}

/** The bot moves until it is the person's turn or the hand is over; then the page is updated. */
async function continueHand() {
  while (engine.betting(hand).actor === other(seat)) {
    const before = hand;
    showTable();
    await thinking();
    if (hand !== before) return; // another opponent was chosen meanwhile
    hand = engine.act(hand, sample(rowAt(opponent.rows, hand)));
  }
  if (engine.isTerminal(hand)) {
    const won = engine.returns(hand)[seat];
    results = memory.addHand(opponent.id, { seat, chips: won, cost: handCost() });
    showReview();
    showScore();
  }
  showTable();
}

/** Wait for the bot, unless the person prefers reduced motion. */
function thinking() {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return null;
  return new Promise((resolve) => setTimeout(resolve, THINKING_TIME));
}

function showTable() {
  const { words, actor } = engine.betting(hand);
  const over = engine.isTerminal(hand);
  const seen = over && words.at(-1) !== "fold";
  showCard(byId("own-card"), hand.cards[seat], "Your card");
  showCard(byId("bot-card"), seen ? hand.cards[other(seat)] : null, "The bot’s card");
  byId("own-seat").textContent = `act ${ORDER[seat]}`;
  byId("bot-seat").textContent = `acts ${ORDER[other(seat)]}`;
  byId("pot").textContent = `Pot ${engine.pot(hand)}`;
  byId("chips").replaceChildren(
    ...Array.from({ length: engine.pot(hand) }, () => make("i")),
  );
  byId("history").replaceChildren(
    ...words.map((_, i) => make("li", { class: mover(i) === seat ? "own" : "" }, moveText(i))),
  );
  const waiting = actor === seat ? turnText(words) : "The bot is thinking…";
  byId("status").textContent = over ? resultText(words) : waiting;
  showVerdict();
  showMoves(over);
}

/** What the person's moves of this hand cost so far. */
function showVerdict() {
  const text = costText(decided, game.costs);
  byId("verdict").className = handCost() > 0 ? "costly" : "free";
  byId("verdict").textContent = text && `Against perfect play, ${text}.`;
}

const handCost = () =>
  decided.reduce((sum, d) => sum + costOf(d.decision, d.action, game.costs), 0);

/** The buttons of the legal moves, or of the next hand; the keyboard focus stays among them.
 * @param {boolean} over */
function showMoves(over) {
  const focused = document.activeElement;
  movesHadFocus =
    Boolean(focused?.closest(".moves")) || (movesHadFocus && focused === document.body);
  const legal = engine.mask(hand, seat);
  for (const button of moveButtons) {
    const action = Number(button.dataset.action);
    button.hidden = over;
    button.disabled = !legal[action];
    if (legal[action])
      button.querySelector("span")?.replaceChildren(capital(word(hand.letters, action)));
  }
  nextButton.hidden = !over;
  if (movesHadFocus) (over ? nextButton : moveButtons.find((button) => !button.disabled))?.focus();
}

/** @param {HTMLElement} card @param {number | null} rank face down if null @param {string} whose */
function showCard(card, rank, whose) {
  card.dataset.card = rank === null ? "back" : engine.CARDS[rank];
  card.setAttribute("aria-label", `${whose}: ${rank === null ? "face down" : CARD_NAMES[rank]}`);
}

function showReview() {
  const lines = decided.map(({ decision, action }) => {
    const { how, judgement, verdict } = review(decision, action, game.equilibrium);
    return make("li", { class: verdict }, how, make("strong", {}, judgement));
  });
  byId("review").replaceChildren(...lines);
}

function showScore() {
  const { n, total, totalError, mean, error, expected, given } = score(results, game.value);
  byId("hands").textContent = n === 1 ? "1 hand" : `${n} hands`;
  showFigure("total", signed(total), totalError, 1);
  showFigure("mean", n ? signed(mean, 2) : "–", error, 2);
  showFigure("expected", signed(expected, 2), null, 0);
  showFigure("given", given.toFixed(2), null, 0);
  showChart(points(results, game.value, perHand));
  byId("reset").hidden = n === 0;
}

/** @param {string} id @param {string} text @param {number | null} error @param {number} digits */
function showFigure(id, text, error, digits) {
  byId(id).replaceChildren(
    text,
    make("small", {}, error === null ? "" : ` ± ${error.toFixed(digits)}`),
  );
}

/** The person's choice in words; the first of a hand names the card too.
 * @param {string[]} words */
function turnText(words) {
  const own = decided.length ? "" : `You hold the ${CARD_NAMES[hand.cards[seat]]}. `;
  const last = words.length ? `The bot ${words.at(-1)}s. ` : "";
  return `${own}${last}${capital(moveNames().join(" or "))}?`;
}

/** @param {string[]} words */
function resultText(words) {
  const won = engine.returns(hand)[seat];
  const amount = chips(Math.abs(won));
  if (words.at(-1) === "fold")
    return won > 0 ? `The bot folds. You win ${amount}.` : `You fold and lose ${amount}.`;
  const [own, theirs] = [seat, other(seat)].map((s) => CARD_NAMES[hand.cards[s]]);
  const last = mover(words.length - 1) === seat ? "" : `The bot ${words.at(-1)}s. `;
  return won > 0
    ? `${last}Your ${own} beats the ${theirs}: you win ${amount}.`
    : `${last}Your ${own} loses to the ${theirs}: you lose ${amount}.`;
}

const moveNames = () =>
  engine.mask(hand, seat).flatMap((legal, action) => (legal ? [word(hand.letters, action)] : []));

/** @param {number} index @returns {Seat} who made the move: seats take turns. */
const mover = (index) => /** @type {Seat} */ (index % 2);

/** @param {number} index */
function moveText(index) {
  const verb = engine.betting(hand).words[index];
  return mover(index) === seat ? `You ${verb}` : `Bot ${verb}s`;
}

/** @param {Seat} of @returns {Seat} */
const other = (of) => (of === 0 ? 1 : 0);

/** @template T @param {T[]} options @returns {T} */
const pick = (options) => options[Math.floor(Math.random() * options.length)];

/** Play against another opponent: show its totals and deal a new hand.
 * @param {Opponent} chosen */
async function choose(chosen) {
  opponent = chosen;
  menu.selectedIndex = opponents.indexOf(chosen);
  memory.rememberChoice(opponents[0].id, chosen.id);
  results = memory.hands(chosen.id);
  byId("runtime").textContent = chosen.note;
  byId("trouble").textContent = "";
  document.body.dataset.plays = chosen.kind;
  showMind(chosen, game);
  showScore();
  await nextHand();
}

/** @param {string | null} fingerprint */
const byFingerprint = (fingerprint) => opponents.find(({ id }) => id === fingerprint);

/** @param {Opponent} added @returns {boolean} whether it is new in the menu */
function addOpponent(added) {
  if (byFingerprint(added.id)) return false;
  opponents.push(added);
  menu.add(new Option(added.name));
  return true;
}

/** Play against the person's own file, or show why that is not possible.
 * @param {File | undefined} file */
async function chooseFile(file) {
  if (!file) return;
  byId("trouble").textContent = "";
  try {
    const added = await fromFile(file, game.runtime);
    if (addOpponent(added)) rememberFile(added);
    await choose(byFingerprint(added.id) ?? added);
  } catch (error) {
    byId("trouble").textContent = `${file.name}: ${/** @type {Error} */ (error).message}`;
  }
}

/** Files are dropped anywhere on the page. */
function acceptDrops() {
  const dragging = (/** @type {boolean} */ on) => document.body.classList.toggle("dragging", on);
  document.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    dragging(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? dragging(false));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    dragging(false);
    chooseFile(event.dataTransfer?.files[0]);
  });
}

function startOver() {
  const hands = results.length === 1 ? "1 hand" : `${results.length} hands`;
  if (!confirm(`Forget the ${hands} against “${opponent.name}”?`)) return;
  memory.forgetHands(opponent.id);
  results = [];
  showScore();
}

function toggleMind() {
  const open = byId("mind").hidden;
  byId("mind").hidden = !open;
  byId("mind-switch").setAttribute("aria-checked", String(open));
}

/** One move per click: the second of a double click would press the button's next move.
 * @param {HTMLButtonElement} button @param {() => void} move */
const onClick = (button, move) =>
  button.addEventListener("click", ({ detail }) => detail > 1 || move());

/** A key presses the button that shows it, once however long it is held; not while the rules are
 * open, nor in the menu, where letters select an entry.
 * @param {KeyboardEvent} event */
function onKey(event) {
  if (rules.open || event.target === menu) return;
  if (event.repeat && event.key === "Enter") event.preventDefault();
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const key =
    event.key === "Enter" && document.activeElement === document.body
      ? "n"
      : event.key.toLowerCase();
  const button = /** @type {HTMLButtonElement | null} */ (
    document.querySelector(`button[data-key="${CSS.escape(key)}"]`)
  );
  if (button && !button.hidden && !button.disabled) button.click();
}

function listen() {
  for (const button of moveButtons) onClick(button, () => play(Number(button.dataset.action)));
  onClick(nextButton, () => engine.isTerminal(hand) && nextHand());
  menu.addEventListener("change", () => choose(opponents[menu.selectedIndex]));
  byId("own-file").addEventListener("click", () => fileInput.click());
  fileInput.addEventListener("change", () => {
    chooseFile(fileInput.files?.[0]);
    fileInput.value = ""; // so that the same file can be chosen again
  });
  byId("reset").addEventListener("click", startOver);
  byId("mind-switch").addEventListener("click", toggleMind);
  byId("how").addEventListener("click", () => rules.showModal());
  byId("rules-close").addEventListener("click", () => rules.close());
  rules.addEventListener("close", memory.rememberRules);
  document.addEventListener("keydown", onKey);
  acceptDrops();
}

async function start() {
  game = await (await fetch("game.json")).json();
  perHand = variance(tableRows(game.perfect));
  for (const one of game.opponents) addOpponent(await fromServer(one, game.runtime));
  for (const file of rememberedFiles()) addOpponent(file);
  listen();
  await choose(byFingerprint(memory.chosen(opponents[0].id)) ?? opponents[0]);
  if (!memory.sawRules()) rules.showModal();
  document.body.dataset.ready = "";
}

start().catch((error) => {
  byId("status").textContent =
    "The page could not start: is the command that opened it still running?";
  console.error(error);
});
