// The page: deals, asks the person and the bot in turn, and says what happened.

import * as engine from "./engine.js";
import { byId, showMind } from "./mind.js";
import { onnxPolicy, sample, tablePolicy } from "./policy.js";
import { CARD_NAMES, capital, review, score, signed, word } from "./score.js";

/** @typedef {import("./engine.js").State} State */
/** @typedef {import("./engine.js").Seat} Seat */

const ORDER = ["first", "second"];
const RUNTIME = "ort/ort.wasm.bundle.min.mjs";
const MISSING =
  "onnxruntime-web is missing (run “make web”, " +
  "or “npm install onnxruntime-web@1.30.0” in the folder you play from)";
const UNLIKE = "The page could not run this ONNX file (docs/onnx.md says what it needs)";

const moveButtons = /** @type {HTMLButtonElement[]} */ ([
  ...document.querySelectorAll("[data-action]"),
]);
const seatInputs = /** @type {NodeListOf<HTMLInputElement>} */ (document.getElementsByName("seat"));
const nextButton = /** @type {HTMLButtonElement} */ (byId("next"));

/** @type {any} */ let bot;
/** @type {import("./policy.js").Policy} */ let policy;
/** @type {State} */ let hand;
/** @type {Seat} */ let seat = 1; // so that alternating starts in the first seat
/** @type {{decision: import("./engine.js").Decision, action: number}[]} */ let decided = [];
/** @type {import("./score.js").Result[]} */ const results = [];

/** Deal the next hand, and let the bot begin if the turn is its. */
async function nextHand() {
  if (hand && !engine.isTerminal(hand)) return;
  const choice = [...seatInputs].find((input) => input.checked)?.value;
  seat = choice === "alternate" ? other(seat) : /** @type {Seat} */ (Number(choice));
  decided = [];
  hand = engine.newHand();
  while (engine.undealt(hand).length) hand = engine.deal(hand, pick(engine.undealt(hand)));
  byId("review").replaceChildren();
  await goOn();
}

/** @param {number} action the person's */
async function play(action) {
  if (engine.betting(hand).actor !== seat) return;
  decided.push({ decision: engine.decisionOf(hand), action });
  hand = engine.act(hand, action);
  await goOn();
}

/** The bot answers as long as the turn is its; then the page shows where the hand stands. */
async function goOn() {
  while (engine.betting(hand).actor === other(seat)) {
    const [row] = await policy.probabilities([engine.decisionOf(hand)]);
    hand = engine.act(hand, sample(row));
  }
  if (engine.isTerminal(hand)) {
    results.push({ seat, chips: engine.returns(hand)[seat] });
    showReview();
    showScore();
  }
  showTable();
}

function showTable() {
  const { words } = engine.betting(hand);
  const over = engine.isTerminal(hand);
  const seen = over && words.at(-1) !== "fold";
  showCard(byId("own-card"), hand.cards[seat], "Your card");
  showCard(byId("bot-card"), seen ? hand.cards[other(seat)] : null, "The bot’s card");
  byId("own-seat").textContent = `act ${ORDER[seat]}`;
  byId("bot-seat").textContent = `acts ${ORDER[other(seat)]}`;
  byId("pot").textContent = `Pot ${engine.pot(hand)}`;
  byId("chips").replaceChildren(
    ...Array.from({ length: engine.pot(hand) }, () => document.createElement("i")),
  );
  byId("history").replaceChildren(
    ...words.map((_, i) => item(moveText(i), mover(i) === seat ? "own" : "")),
  );
  byId("status").textContent = over ? resultText(words) : turnText(words);
  showMoves(over);
}

/** The legal moves, or the way on; the keyboard's place stays among them.
 * @param {boolean} over */
function showMoves(over) {
  const focused = Boolean(document.activeElement?.closest(".moves"));
  const legal = engine.mask(hand, seat);
  for (const button of moveButtons) {
    const action = Number(button.dataset.action);
    button.hidden = over;
    button.disabled = !legal[action];
    if (legal[action])
      button.querySelector("span")?.replaceChildren(capital(word(hand.letters, action)));
  }
  nextButton.hidden = !over;
  if (focused) (over ? nextButton : moveButtons.find((button) => !button.disabled))?.focus();
}

/** @param {HTMLElement} element @param {number | null} card face down if null @param {string} whose */
function showCard(element, card, whose) {
  element.dataset.card = card === null ? "back" : engine.CARDS[card];
  element.setAttribute("aria-label", `${whose}: ${card === null ? "face down" : CARD_NAMES[card]}`);
}

function showReview() {
  const lines = decided.map(({ decision, action }) => {
    const { how, judgement, verdict } = review(decision, action, bot.equilibrium);
    const line = item(how, verdict);
    const strong = document.createElement("strong");
    strong.textContent = judgement;
    line.append(strong);
    return line;
  });
  byId("review").replaceChildren(...lines);
}

function showScore() {
  const { n, total, totalError, mean, error, expected } = score(results, bot.equilibrium_value);
  byId("hands").textContent = n === 1 ? "1 hand" : `${n} hands`;
  showFigure("total", signed(total), totalError, 1);
  showFigure("mean", signed(mean, 2), error, 2);
  byId("expected").textContent = signed(expected, 2);
}

/** @param {string} id @param {string} text @param {number | null} error @param {number} digits */
function showFigure(id, text, error, digits) {
  const small = document.createElement("small");
  small.textContent = error === null ? "" : ` ± ${error.toFixed(digits)}`;
  byId(id).replaceChildren(text, small);
}

/** Where the person's decision stands; the first of a hand names the card too.
 * @param {string[]} words */
function turnText(words) {
  const own = decided.length ? "" : `You hold the ${CARD_NAMES[hand.cards[seat]]}. `;
  const last = words.length ? `The bot ${words.at(-1)}s. ` : "";
  return `${own}${last}${capital(moveNames().join(" or "))}?`;
}

/** @param {string[]} words */
function resultText(words) {
  const chips = engine.returns(hand)[seat];
  const amount = `${Math.abs(chips)} chip${Math.abs(chips) === 1 ? "" : "s"}`;
  if (words.at(-1) === "fold")
    return chips > 0 ? `The bot folds. You win ${amount}.` : `You fold and lose ${amount}.`;
  const [own, theirs] = [seat, other(seat)].map((s) => CARD_NAMES[hand.cards[s]]);
  const last = mover(words.length - 1) === seat ? "" : `The bot ${words.at(-1)}s. `;
  return chips > 0
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

/** @param {string} text @param {string} className */
function item(text, className) {
  const element = document.createElement("li");
  element.textContent = text;
  element.className = className;
  return element;
}

/** The policy that plays, and a word on where it runs.
 * @returns {Promise<[import("./policy.js").Policy, string]>} */
async function choosePolicy() {
  const table = tablePolicy(bot.policy);
  if (!bot.onnx) return [table, "The bot plays from its table of 12 rows."];
  const instead = "so the bot plays the same policy from its table of 12 rows.";
  if (!bot.runtime) return [table, `${MISSING}, ${instead}`];
  try {
    const runtime = await import(new URL(RUNTIME, document.baseURI).href);
    const bytes = new Uint8Array(await (await fetch(bot.onnx)).arrayBuffer());
    const model = await onnxPolicy(bytes, runtime);
    const distance = largestDifference(
      await model.probabilities(engine.INFORMATION_STATES),
      await table.probabilities(engine.INFORMATION_STATES),
    );
    return [
      model,
      `The ONNX model runs in this page, within ${distance.toPrecision(1)} of Python.`,
    ];
  } catch (error) {
    console.info(error);
    return [table, `${UNLIKE}, ${instead}`];
  }
}

/** @param {number[][]} a @param {number[][]} b */
const largestDifference = (a, b) =>
  Math.max(...a.flatMap((row, i) => row.map((p, j) => Math.abs(p - b[i][j]))));

function toggleMind() {
  const open = byId("mind").hidden;
  byId("mind").hidden = !open;
  byId("mind-switch").setAttribute("aria-checked", String(open));
}

/** One move a click: the second of a double click would hit whatever the button says next.
 * @param {HTMLButtonElement} button @param {() => void} move */
const onClick = (button, move) =>
  button.addEventListener("click", ({ detail }) => detail > 1 || move());

/** A key presses the button that shows it, once however long it is held.
 * @param {KeyboardEvent} event */
function onKey(event) {
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

async function start() {
  bot = await (await fetch("bot.json")).json();
  byId("bot-name").textContent = bot.name;
  [policy, byId("runtime").textContent] = await choosePolicy();
  showMind(bot, await policy.probabilities(engine.INFORMATION_STATES));
  for (const button of moveButtons) onClick(button, () => play(Number(button.dataset.action)));
  onClick(nextButton, nextHand);
  byId("mind-switch").addEventListener("click", toggleMind);
  document.addEventListener("keydown", onKey);
  showScore();
  await nextHand();
  document.body.dataset.ready = policy.kind;
}

start().catch((error) => {
  byId("status").textContent =
    "The page could not start: is “python -m algorithms.play” still running?";
  console.error(error);
});
