import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fingerprint,
  fromFile,
  rememberFile,
  rememberedFiles,
} from "../../kuhn_bridge/web/opponents.js";
import { INFORMATION_STATES } from "../../kuhn_bridge/web/engine.js";

const row = [0.25, 0.75, 0];

test("a policy is known by what it plays, to six digits", () => {
  assert.match(fingerprint([row]), /^[0-9a-f]{8}$/);
  assert.equal(fingerprint([row]), fingerprint([[0.25 + 1e-9, 0.75 - 1e-9, 0]]));
  assert.notEqual(fingerprint([row]), fingerprint([[0.25001, 0.74999, 0]]));
  assert.notEqual(fingerprint([row]), fingerprint([[0.75, 0.25, 0]]));
});

const file = (name, size = 1) => ({ name, size, text: async () => "{}" });

test("files that cannot play say what would", async () => {
  await assert.rejects(fromFile(file("a.json"), true), /not a policy/);
  await assert.rejects(fromFile(file("a.txt"), true), /a policy must be \.json or \.onnx/);
  await assert.rejects(fromFile(file("a.zip"), true), /kuhn-bridge play a\.zip/);
  await assert.rejects(fromFile(file("a.onnx"), false), /npm install onnxruntime-web/);
  await assert.rejects(fromFile(file("a.json", 65 * 2 ** 20), true), /64 MiB/);
});

test("a file is remembered as it plays; a damaged one is left out", () => {
  const held = new Map();
  globalThis.localStorage = {
    getItem: (key) => held.get(key) ?? null,
    setItem: (key, value) => held.set(key, value),
  };
  const rows = INFORMATION_STATES.map(({ letters }) =>
    letters.endsWith("b") ? [0.1, 0, 0.9] : [1 / 3, 2 / 3, 0],
  );
  rememberFile({ name: "mine.onnx", kind: "onnx", rows });
  const [mine] = rememberedFiles();
  assert.deepEqual([mine.name, mine.kind, mine.rows], ["mine.onnx", "onnx", rows]);
  assert.equal(mine.id, fingerprint(rows));
  held.set("kuhn-bridge:files", held.get("kuhn-bridge:files").replace("0.9", "0.8"));
  assert.deepEqual(rememberedFiles(), []);
});
