import { expect, test } from "vitest";
import type { Silence } from "../api/silences";
import { isOver, within } from "./surroundings";

const silence = (part: Partial<Silence>) => ({ bucketId: null, alertIds: null, ...part }) as Silence;

test("a silence is over all rules, those of a bucket, or some", () => {
  const rule = { _id: "r", bucketId: "b" };
  expect(isOver(silence({}), rule)).toBe(true);
  expect(isOver(silence({ bucketId: "b" }), rule)).toBe(true);
  expect(isOver(silence({ bucketId: "other" }), rule)).toBe(false);
  expect(isOver(silence({ alertIds: ["q", "r"] }), rule)).toBe(true);
  expect(isOver(silence({ bucketId: "b", alertIds: ["q"] }), rule)).toBe(false);
});

test("what overlaps a span belongs to it", () => {
  const note = (at: number, until: number | null) => ({ id: "", text: "", at, until });
  expect(within([note(9, null), note(10, null), note(20, null), note(21, null)], 10, 20)).toHaveLength(2);
  expect(within([note(1, 10), note(1, 9), note(1, 99)], 10, 20)).toHaveLength(2);
});
