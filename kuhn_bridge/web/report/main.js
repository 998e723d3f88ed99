// The page: reads the document, fills each section, and hides sections without content.

import { byId, make } from "../dom.js";
import { plural } from "../text.js";
import { showCurve } from "./curve.js";
import { decodeDocument } from "./document.js";
import { startHands } from "./hands.js";
import { startExplorer } from "./explorer.js";
import { showLosses } from "./losses.js";
import { startPlay } from "./play.js";
import { showSummary } from "./summary.js";

/** @returns {Promise<any>} from the page itself, or from the server that it came from */
async function readDocument() {
  const inPage = document.getElementById("document");
  return inPage ? JSON.parse(inPage.textContent ?? "") : (await fetch("/document.json")).json();
}

/** Hide a section without content, and remove its link.
 * @param {string} id */
function leaveOut(id) {
  byId(id).hidden = true;
  document.querySelector(`nav a[href="#${id}"]`)?.parentElement?.remove();
}

/** @param {ReturnType<typeof decodeDocument>} report */
function showTitle({ game, policies, madeBy, mode }) {
  const own = policies.filter(({ role }) => role === null).map(({ name }) => name);
  document.title = `${(own.length ? own : [policies[0].name]).join(", ")} · ${game.name}`;
  byId("title").textContent = mode === "play" ? `Play ${game.name}` : game.name;
  const size = [
    plural(game.num_players, "player"),
    ...(game.nodes === null ? [] : [plural(game.nodes, "node")]),
    ...(game.infosets === null ? [] : [plural(game.infosets, "information set")]),
  ];
  byId("size").textContent = size.join(" · ");
  const versions = Object.entries(madeBy).map((pair) => pair.join(" "));
  byId("made-by").textContent =
    `Made by ${versions.join(", ")}. All numbers were computed by Python; this page only shows them.`;
}

/** In play mode the table comes first.
 * @param {string} mode */
function arrange(mode) {
  if (mode !== "play") return;
  byId("summary").before(byId("play"));
  const item = document.querySelector('nav a[href="#play"]')?.parentElement;
  if (item) item.parentElement?.prepend(item);
}

async function start() {
  const report = decodeDocument(await readDocument());
  showTitle(report);
  showSummary(report);
  if (!showCurve(report)) leaveOut("curve");
  if (!showLosses(report)) leaveOut("losses");
  if (!startHands(report)) leaveOut("hands");
  if (report.tree) startExplorer(report);
  else leaveOut("explorer");
  if (startPlay(report)) arrange(report.mode);
  else leaveOut("play");
  if (report.withoutTree) byId("summary").append(make("p", { class: "note" }, report.withoutTree));
  document.body.dataset.ready = "";
}

start().catch((error) => {
  byId("trouble").textContent = "The page could not start: its document is incomplete.";
  console.error(error);
});
