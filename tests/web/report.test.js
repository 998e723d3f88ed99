import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "../../kuhn_bridge/web/report/curve.js";
import { decodeArray, decodeDocument, starts } from "../../kuhn_bridge/web/report/document.js";
import { decades, position, ticks } from "../../kuhn_bridge/web/report/scale.js";
import { figure, plural, share } from "../../kuhn_bridge/web/text.js";

const encode = (dtype, array) => ({
  dtype,
  data: Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64"),
});

test("arrays come back as they were written", () => {
  const cases = {
    float32: Float32Array.of(0.5, -1e-30, NaN),
    int16: Int16Array.of(-1, 24575),
    uint8: Uint8Array.of(0, 255),
    int32: Int32Array.of(300000),
  };
  for (const [dtype, array] of Object.entries(cases))
    assert.deepEqual(decodeArray(encode(dtype, array)), array);
});

test("a document of another format or version is refused", () => {
  assert.throws(() => decodeDocument({ format: "x", version: 1 }), /not a report of version 1/);
  assert.throws(() => decodeDocument({ format: "kuhn-bridge-report", version: 2 }), /version 1/);
});

test("groups start where the ones before end", () => {
  assert.deepEqual([...starts(Uint8Array.of(2, 0, 3), 1)], [1, 3, 3, 6]);
});

test("a scale holds all values that are not 0, between powers of ten", () => {
  assert.deepEqual(decades([0.2, 4.7, 0]), { low: -1, high: 1 });
  assert.deepEqual(decades([0]), { low: -1, high: 0 });
  assert.deepEqual(decades([0.01]), { low: -2, high: -1 });
  const scale = decades([0.001, 10]);
  assert.deepEqual(
    [0.001, 0.1, 10].map((x) => position(x, scale)),
    [0, 0.5, 1],
  );
});

test("ticks are powers of ten, at most six of them", () => {
  assert.deepEqual(
    ticks({ low: -2, high: 1 }).map(({ text }) => text),
    ["0.01", "0.1", "1", "10"],
  );
  assert.deepEqual(
    ticks({ low: -9, high: 1 }).map(({ text }) => text),
    ["1e−9", "1e−7", "1e−5", "0.001", "0.1", "10"],
  );
});

test("shares and figures have the digits they need, and never round to certainty", () => {
  const shares = [0, 1e-5, 0.0005, 0.0123, 0.5, 0.9999, 1, 1 / 3];
  assert.deepEqual(shares.map(share), [
    ..."0% <0.01% 0.05% 1.2% 50.0% >99.9% 100% 33.3%".split(" "),
  ]);
  const figures = [0, 0.203822, 4.74722, -1.5, 1.24e-7, 12345.6];
  assert.deepEqual(figures.map(figure), ["0", "0.2038", "4.747", "−1.500", "1.2e−7", "12,346"]);
  assert.deepEqual([plural(1, "hand"), plural(1234, "hand")], ["1 hand", "1,234 hands"]);
});

test("the nearest of sorted numbers", () => {
  assert.deepEqual(
    [-5, 0, 4, 6, 99].map((x) => nearest([0, 5, 10], x)),
    [0, 0, 1, 1, 2],
  );
});
