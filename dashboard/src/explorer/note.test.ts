import { describe, expect, test } from "vitest";
import type { Step } from "../api/query";
import type { Source } from "../api/sources";
import type { Part, View } from "./fetch";
import { noteOf, remarksOf } from "./note";
import type { Plan } from "./plan";
import { PLAN } from "./plan.fixture";
import type { Line } from "./series";

const part = (groupBy: Step | null, points: number | null): Part => ({
  tables: new Map(),
  groupBy,
  points,
  truncated: false,
});
const view = (parts: Part[], plan: Partial<Plan> = {}): View => ({
  span: { from: 0, to: 3_600_000 },
  plan: { ...PLAN, ...plan },
  parts,
  latest: [],
  newest: new Map(),
  tookMs: 1,
  readAt: 0,
});
const lines = (...counts: number[]) => counts.map((count) => ({ values: new Array<number>(count).fill(1) }) as Line);
const said = (shown: View, drawn: Line[]) => {
  const { drawn: what, how } = noteOf(shown, drawn);
  return what + how;
};

describe("what is drawn", () => {
  test.each([
    [view([part(null, 3600)]), lines(3600), "3,600 points as they came"],
    [view([part(null, 1)]), lines(1), "1 point as they came"],
    [
      view([part("5s", 10_800)]),
      lines(720, 720, 720),
      "720 values a line, averaged by 5 s of 10,800 points; the band is min to max",
    ],
    [
      view([part("5s", 3600), part("minute", 90_000)]),
      lines(720, 60),
      "up to 720 values a line, averaged by 5 s or minute of 93,600 points; the band is min to max",
    ],
    [
      view([part("day", null)], { kind: "grouped", groupBy: "day", aggregation: "count" }),
      lines(532),
      "532 values, the number of points of each day",
    ],
    [
      view([part("5m", 8000), part(null, 10)], { aggregation: "max" }),
      lines(289, 10),
      "up to 289 values a line, the greatest value of each 5 min, others as raw points",
    ],
  ])("%#", (shown, drawn, text) => expect(said(shown, drawn)).toBe(text));
});

test("what is left out is named", () => {
  const source = { schema: { mode: { type: "string" } } } as unknown as Source;
  const fields = [{ bucketId: "b", sourceId: "a", field: "mode" }];
  expect(remarksOf(view([part(null, 1)]), fields, new Map([["a", source]]))).toEqual([
    "Text fields are in the table below: mode.",
  ]);
  expect(remarksOf(view([{ ...part(null, 1), truncated: true }]), [], new Map())).toHaveLength(1);
  const bucket = { bucketId: "b", sourceIds: ["a"], refs: fields, fields: ["on"] };
  const buckets = [false, true].map((shares) => ({ ...bucket, shares }));
  const both = view([part("hour", null), part("30m", 30_000)], { kind: "grouped", groupBy: "hour", buckets });
  const shown = [...lines(168), { ...lines(334)[0]!, type: "boolean" as const }];
  expect(said(both, shown)).toBe("168 values, averaged by hour; the band is min to max");
  expect(remarksOf(both, [], new Map())).toEqual([
    "Booleans are shown as the share of time they were true, per 30 min.",
  ]);
});
