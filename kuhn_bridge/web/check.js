// node check.js <vectors.json | -> : where engine.js and the core's vectors differ, as JSON.
// node check.js <vectors.json | -> <policy.onnx> <onnxruntime.mjs> : also what policy.js computes.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import * as engine from "./engine.js";
import { onnxPolicy } from "./policy.js";

/** The engine's state at a node of the vectors, reached by dealing and acting from the start. */
function replay({ cards, letters }) {
  let state = cards.reduce(engine.deal, engine.newHand());
  for (const prefix of [...letters].map((_, i) => letters.slice(0, i + 1))) {
    const { after } = engine.betting(state);
    state = engine.act(state, Number(Object.keys(after).find((a) => after[a] === prefix)));
  }
  return state;
}

/** A state in the form of the vectors. */
function describe(state) {
  const { words, phase, actor, after } = engine.betting(state);
  return {
    cards: state.cards,
    letters: state.letters,
    history: words,
    phase,
    actor,
    deals: engine.undealt(state),
    after,
    returns: engine.returns(state),
    agents: engine.SEATS.map((seat) => ({
      observation: engine.observe(state, seat),
      mask: engine.mask(state, seat),
    })),
  };
}

/** @returns {{nodes: number, compared: number, mismatches: object[]}} */
export function compare({ nodes }) {
  const mismatches = [];
  let compared = 0;
  for (const node of nodes) {
    const { cards, letters } = node;
    let ours;
    try {
      ours = describe(replay(node));
    } catch (error) {
      mismatches.push({ cards, letters, field: "reach", engine: String(error), core: "reachable" });
      continue;
    }
    for (const field of Object.keys(node)) {
      compared += 1;
      if (JSON.stringify(ours[field]) !== JSON.stringify(node[field]))
        mismatches.push({ cards, letters, field, engine: ours[field], core: node[field] });
    }
  }
  return { nodes: nodes.length, compared, mismatches };
}

/** The probabilities of policy.js at the 12 information states, from an ONNX file. */
export async function probabilities(onnxPath, runtimePath) {
  const runtime = await import(pathToFileURL(runtimePath).href);
  const policy = await onnxPolicy(readFileSync(onnxPath), runtime);
  return policy.probabilities(engine.INFORMATION_STATES);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [vectors, onnx, runtime] = process.argv.slice(2);
  const report = compare(JSON.parse(readFileSync(vectors === "-" ? 0 : vectors, "utf8")));
  const model = onnx ? { probabilities: await probabilities(onnx, runtime) } : {};
  console.log(JSON.stringify({ ...report, ...model }));
}
