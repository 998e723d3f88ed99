// A worker that evaluates an ONNX policy, so that an endless graph does not block the page.

import { INFORMATION_STATES } from "./engine.js";
import { onnxPolicy } from "./policy.js";

addEventListener("message", async ({ data: { bytes, runtime } }) => {
  try {
    const policy = await onnxPolicy(new Uint8Array(bytes), await import(runtime));
    postMessage({ rows: await policy.probabilities(INFORMATION_STATES) });
  } catch (error) {
    postMessage({ failure: String(error) });
  }
});
