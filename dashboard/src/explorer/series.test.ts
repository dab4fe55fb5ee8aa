import { describe, expect, test } from "vitest";
import type { QueryRow, Value } from "../api/query";
import type { Source } from "../api/sources";
import type { Row, View } from "./fetch";
import type { Plan } from "./plan";
import { aligned, linesOf, pointsOf } from "./series";

const SOURCES = new Map(
  ["a", "b"].map((id) => [
    id,
    {
      _id: id,
      name: id,
      schema: { v: { type: "number", unit: "m" }, on: { type: "boolean" }, mode: { type: "string" } },
    } as unknown as Source,
  ]),
);
const PLAN: Plan = {
  kind: "raw",
  groupBy: null,
  aggregation: "avg",
  buckets: [],
  expectedPoints: 0,
  coarsenedFrom: null,
  leftOut: [],
};

const row = (at: number, values: Record<string, Value>, dataSourceId = "a", stats?: QueryRow["stats"]): Row => ({
  at,
  timestamp: "",
  dataSourceId,
  values,
  ...(stats === undefined ? {} : { stats }),
});
const view = (rows: Row[], more: Partial<View> = {}): View => ({
  span: { from: 0, to: 1 },
  plan: PLAN,
  rows,
  groupBy: null,
  latest: [],
  newest: new Map(),
  truncated: false,
  tookMs: 1,
  ...more,
});
const ref = (field: string, sourceId = "a") => ({ bucketId: "x", sourceId, field });
const line = (rows: Row[], field = "v", more: Partial<View> = {}) =>
  linesOf(view(rows, more), [ref(field)], SOURCES)[0]!;

describe("lines", () => {
  test("a long pause breaks the line", () => {
    const rows = [0, 60, 120, 180, 3600, 3660, 3720].map((at) => row(at, { v: at }));
    const made = line(rows);
    expect(made.values).toEqual([0, 60, 120, 180, null, 3600, 3660, 3720]);
    expect(pointsOf(made)).toBe(7);
  });

  test("a source that changes its pace has no gap where it does", () => {
    const slow = Array.from({ length: 10 }, (_, n) => n * 60_000);
    const quick = Array.from({ length: 100 }, (_, n) => 600_000 + n * 1000);
    const made = line([...slow, ...quick].map((at) => row(at, { v: 1 })));
    expect(made.values).not.toContain(null);
  });

  test("a missing group is a gap, a month of 31 days is none", () => {
    const hour = 3_600_000;
    expect(
      line(
        [0, hour, 3 * hour].map((at) => row(at, { v: 1 })),
        "v",
        { groupBy: "hour" },
      ).values,
    ).toEqual([1, 1, null, 1]);
    const months = [0, 1, 2, 3].map((month) => row(Date.UTC(2026, month), { v: 1 }));
    expect(line(months, "v", { groupBy: "month" }).values).not.toContain(null);
  });

  test("averages carry what they smoothed", () => {
    const made = line([row(0, { v: 2 }, "a", { v: { min: 1, max: 9, count: 4 } })], "v", { groupBy: "hour" });
    expect([made.lows, made.highs]).toEqual([[1], [9]]);
  });

  test("switches are 0 and 1, texts are no lines, null is no value", () => {
    expect(line([row(0, { on: true }), row(1, { on: false }), row(2, { on: null })], "on").values).toEqual([1, 0]);
    expect(linesOf(view([row(0, { mode: "x" })]), [ref("mode")], SOURCES)).toEqual([]);
  });
});

test("lines of several sources share one axis; what a line does not have is not a gap", () => {
  const rows = [row(0, { v: 1 }), row(1, { v: 7 }, "b"), row(2, { v: 2 })];
  const table = aligned(linesOf(view(rows), [ref("v"), ref("v", "b")], SOURCES));
  expect(table.times).toEqual([0, 1, 2]);
  expect(table.columns.map(({ values }) => values)).toEqual([
    [1, undefined, 2],
    [undefined, 7, undefined],
  ]);
});

test("two points of one time are one place on the axis", () => {
  const table = aligned([line([row(0, { v: 1 }), row(0, { v: 2 }), row(5, { v: 3 })])]);
  expect(table.times).toEqual([0, 5]);
  expect(table.columns[0]!.values).toHaveLength(2);
});
