import { expect, test } from "vitest";
import { evidenceWords } from "./evidence";

test.each([
  [{ currentValue: 7.82, threshold: 7.1, operator: "gt" }, "current value 7.82, threshold 7.1, operator gt"],
  [{ threshold: [25, 88], inputs: [{ key: "x" }] }, "threshold [25, 88], inputs [{key x}]"],
  [{ URL: "x", motor_temp: true, a: null, b: {} }, "URL x, motor_temp true, a –, b {}"],
  [{}, "{}"],
  ["two of five", "two of five"],
  [[1, { a: 2 }], "[1, {a 2}]"],
  [0, "0"],
])("%j in a line", (evidence, line) => expect(evidenceWords(evidence)).toBe(line));

test("a long one is cut between characters", () => {
  const words = evidenceWords({ note: "🌊".repeat(500) });
  expect([...words]).toHaveLength(120);
  expect(words.endsWith("🌊…")).toBe(true);
});
