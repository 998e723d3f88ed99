import assert from "node:assert/strict";
import { test } from "node:test";
import { points } from "../../kuhn_bridge/web/chart.js";

const hands = (n) => Array.from({ length: n }, (_, i) => ({ seat: i % 2, chips: 1, cost: 0 }));

test("the chart starts at 0 and follows chips, fair share and band", () => {
  const path = points(hands(3), -1 / 18, 4);
  assert.deepEqual(path[0], { hands: 0, chips: 0, share: 0, margin: 0 });
  assert.deepEqual(
    path.map(({ hands, chips }) => [hands, chips]),
    [0, 1, 2, 3].map((n) => [n, n]),
  );
  assert.ok(Math.abs(path[1].share + 1 / 18) < 1e-12);
  assert.ok(Math.abs(path[2].share) < 1e-12);
  assert.ok(Math.abs(path[2].margin - 1.96 * Math.sqrt(8)) < 1e-12);
});

test("a long game is drawn with few points, its last hand among them", () => {
  const path = points(hands(10_001), -1 / 18, 4);
  assert.ok(path.length > 290 && path.length < 310);
  assert.equal(path.at(-1).hands, 10_001);
  assert.equal(path.at(-1).chips, 10_001);
});

test("no hand is a chart of one point", () => assert.equal(points([], -1 / 18, 4).length, 1));
