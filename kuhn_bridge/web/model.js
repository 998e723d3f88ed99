// A worker that asks an ONNX policy once, apart from the page: a graph may loop without end.

import { INFORMATION_STATES } from "./engine.js";
import { onnxPolicy } from "./policy.js";

addEventListener("message", async ({ data: { bytes, runtime } }) => {
  try {
    const policy = await onnxPolicy(new Uint8Array(bytes), await import(runtime));
    postMessage({ rows: await policy.probabilities(INFORMATION_STATES) });
  } catch (error) {
    postMessage({ trouble: String(error) });
  }
});
