import { describe, expect, test } from "vitest";
import type { Step, Value } from "../api/query";
import type { Source } from "../api/sources";
import type { View } from "./fetch";
import type { Plan } from "./plan";
import { PLAN } from "./plan.fixture";
import { aligned, linesOf, placesIn, pointsOf, type Line } from "./series";
import type { SourceTable } from "./table";

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
const HOUR = 3_600_000;
const FIELDS = ["v", "on", "mode"];
const REFS = ["a", "b"].flatMap((sourceId) => FIELDS.map((field) => ({ bucketId: "x", sourceId, field })));
const BUCKET = { bucketId: "x", sourceIds: ["a", "b"], refs: REFS, fields: FIELDS, shares: false };

/** `[time, value]`, and the least and the greatest where the value is an average. */
type Cell = [at: number, value: Value, low?: number, high?: number];

function table(field: string, cells: Cell[]): SourceTable {
  const band = cells.some(([, , low]) => low !== undefined);
  const column = (place: 2 | 3) => new Map(band ? [[field, cells.map((cell) => cell[place] ?? null)]] : []);
  return {
    sourceId: "a",
    group: [],
    times: cells.map(([at]) => at),
    timestamps: [],
    values: new Map([[field, cells.map(([, value]) => value)]]),
    previous: new Map(),
    lows: column(2),
    highs: column(3),
    metadata: null,
  };
}

function view(tables: Record<string, SourceTable>, groupBy: Step | null = null, more: Partial<View> = {}): View {
  return {
    span: { from: 0, to: Infinity },
    plan: { ...PLAN, buckets: [BUCKET] },
    parts: [{ tables: new Map(Object.entries(tables)), groupBy, points: null, truncated: false }],
    latest: [],
    newest: new Map(),
    tookMs: 1,
    readAt: 0,
    ...more,
  };
}

const ref = (field: string, sourceId = "a") => ({ bucketId: "x", sourceId, field });
const line = (cells: Cell[], field = "v", groupBy: Step | null = null, more: Partial<View> = {}) =>
  linesOf(view({ a: table(field, cells) }, groupBy, more), [ref(field)], SOURCES)[0]!;
const cells = (times: number[], value: Value = 1): Cell[] => times.map((at) => [at, value]);

describe("comparison", () => {
  test("what stood there before is a line of its own, of the same colour and without a band", () => {
    const averages: SourceTable = { ...table("v", [[0, 2, 1, 3], [HOUR, 4, 3, 5], [2 * HOUR, null]]) };
    averages.previous.set("v", [7, null, 9]);
    const plan: Plan = { ...PLAN, kind: "grouped", groupBy: "hour", compare: "7d", buckets: [BUCKET] };
    const shown = view({ a: averages }, "hour", { plan });
    const [now, before] = linesOf(shown, [ref("v")], SOURCES) as [Line, Line];
    expect([now.label, before.label]).toEqual(["a · v", "a · v · 7 d before"]);
    expect([now.isBefore, before.isBefore, before.index]).toEqual([false, true, now.index]);
    expect([now.values, before.values]).toEqual([
      [2, 4],
      [7, null, 9],
    ]);
    expect([now.lows, before.lows, before.newest]).toEqual([[1, 3], null, null]);
    expect(before.times).toEqual([HOUR / 2, 1.5 * HOUR, 2.5 * HOUR]);
  });

  test("a rate has the unit of its field per second, and no newest point", () => {
    const newest = new Map([["x.a.v", { at: 5, value: 1 }]]);
    const plan: Plan = { ...PLAN, kind: "grouped", groupBy: "hour", aggregation: "rate", buckets: [BUCKET] };
    const made = linesOf(view({ a: table("v", [[0, 2]]) }, "hour", { plan, newest }), [ref("v")], SOURCES)[0]!;
    expect([made.unit, made.newest]).toEqual(["m/s", null]);
  });
});

describe("groups by dimensions", () => {
  const group = (host: string | null, values: Cell[]): SourceTable => ({ ...table("v", values), group: [["host", host]] });
  const dimensions = { ...PLAN.dimensions, groups: ["host"] };
  const plan: Plan = { ...PLAN, kind: "grouped", groupBy: "hour", compare: "7d", dimensions, buckets: [BUCKET] };
  const shown = (tables: Record<string, SourceTable>) => view(tables, "hour", { plan });

  test("each is a line, named after its values; what stood there before has its colour", () => {
    const before = group("b", [[0, 3], [HOUR, 4]]);
    before.previous.set("v", [1, 1]);
    const tables = { "a 1": group("a", [[0, 1]]), "a 2": before, "a 3": group(null, [[0, 5]]) };
    const made = linesOf(shown(tables), [ref("v")], SOURCES);
    expect(made.map(({ label }) => label)).toEqual(["no host", "host=a", "host=b", "host=b · 7 d before"]);
    expect(made[2]!.index).toBe(made[3]!.index);
    expect(new Set(made.map(({ index }) => index)).size).toBe(3);
    expect(made.map(({ newest }) => newest)).toEqual([null, null, null, null]);
    const several = linesOf(shown(tables), [ref("v"), ref("on")], SOURCES);
    expect(several.map(({ label }) => label)[1]).toBe("a · v · host=a");
  });

  test("a line keeps its colour when others come before it", () => {
    const first = linesOf(shown({ "a 1": group("m", [[0, 1]]) }), [ref("v")], SOURCES);
    const tables = Object.fromEntries([..."abcdefghm"].map((host) => [`a ${host}`, group(host, [[0, 1]])]));
    const next = linesOf(shown(tables), [ref("v")], SOURCES, placesIn(first));
    expect(next.find(({ label }) => label === "host=m")!.index).toBe(first[0]!.index);
  });

  test("groups without a value of the field, and those beyond the bound, are no lines", () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`a ${n}`, group(`h${n}`, [[0, 1]])]));
    expect(linesOf(shown({ ...many, "a x": group("x", [[0, null]]) }), [ref("v")], SOURCES)).toHaveLength(20);
  });
});

describe("lines", () => {
  test("a long pause breaks the line", () => {
    const made = line([0, 60, 120, 180, 3600, 3660, 3720].map((at) => [at, at]));
    expect(made.values).toEqual([0, 60, 120, 180, null, 3600, 3660, 3720]);
    expect(pointsOf(made)).toBe(7);
  });

  test("a source that changes its pace has no gap where it does", () => {
    const slow = Array.from({ length: 10 }, (_, n) => n * 60_000);
    const quick = Array.from({ length: 100 }, (_, n) => 600_000 + n * 1000);
    expect(line(cells([...slow, ...quick])).values).not.toContain(null);
  });

  test("a missing group is a gap, a month of 31 days is none", () => {
    expect(line(cells([0, HOUR, 2 * HOUR, 4 * HOUR]), "v", "hour").values).toEqual([1, 1, 1, null, 1]);
    const months = cells([0, 1, 2, 3].map((month) => Date.UTC(2026, month)));
    expect(line(months, "v", "month").values).not.toContain(null);
  });

  test("averages carry what they smoothed", () => {
    const made = line([[0, 2, 1, 9]], "v", "hour");
    expect([made.lows, made.highs]).toEqual([[1], [9]]);
  });

  test("switches are 0 and 1, and shares of the time in averages; texts are no lines, null is no value", () => {
    const switched: Cell[] = [
      [0, true],
      [1, false],
      [2, null],
    ];
    expect(line(switched, "on").values).toEqual([1, 0]);
    expect(line([[0, 0.63, 0, 1]], "on", "hour")).toMatchObject({
      values: [0.63],
      lows: [0],
      highs: [1],
      step: "hour",
    });
    expect(linesOf(view({ a: table("mode", cells([0], "x")) }), [ref("mode")], SOURCES)).toEqual([]);
  });
});

test("a switch beside groups by name is a line of another part", () => {
  const [numbers, switches] = [REFS.filter(({ field }) => field !== "on"), REFS.filter(({ field }) => field === "on")];
  const plan = {
    ...PLAN,
    kind: "grouped" as const,
    groupBy: "hour" as const,
    buckets: [
      { ...BUCKET, refs: numbers, fields: ["v"] },
      { ...BUCKET, refs: switches, fields: ["on"], shares: true },
    ],
  };
  const part = (field: string, value: Value, groupBy: Step) => ({
    tables: new Map([["a", table(field, [[0, value, 0, 1]])]]),
    groupBy,
    points: null,
    truncated: false,
  });
  const shown = view({}, null, { plan, parts: [part("v", 7, "hour"), part("on", 0.25, "5m")] });
  expect(linesOf(shown, [ref("v"), ref("on")], SOURCES)).toMatchObject([
    { values: [7], step: "hour" },
    { values: [0.25], step: "5m", type: "boolean" },
  ]);
});

describe("where a group is drawn", () => {
  test("in the middle of its part of the range", () => {
    const span = { from: HOUR / 2, to: 2.5 * HOUR };
    const made = line(cells([0, HOUR, 2 * HOUR]), "v", "hour", { span });
    expect(made.times).toEqual([0.75 * HOUR, 1.5 * HOUR, 2.25 * HOUR]);
    expect(made.starts).toEqual([0, HOUR, 2 * HOUR]);
  });

  test("the group that goes on reaches to the newest point", () => {
    const newest = new Map([["x.a.v", { at: 1.6 * HOUR, value: 3 }]]);
    expect(line(cells([0, HOUR]), "v", "hour", { newest })).toMatchObject({
      times: [0.5 * HOUR, 1.6 * HOUR],
      newest: { at: 1.6 * HOUR, value: 3 },
    });
  });

  test("a newest point where a group ends is that of the next group", () => {
    const newest = new Map([["x.a.v", { at: HOUR, value: 3 }]]);
    const of = (starts: number[]) => line(cells(starts), "v", "hour", { newest }).times;
    expect([of([0, HOUR]), of([0])]).toEqual([[0.5 * HOUR, HOUR], [0.5 * HOUR]]);
  });
});

test("the newest value of sums is that of the newest group, drawn where the data end", () => {
  const plan = { ...PLAN, kind: "grouped" as const, groupBy: "hour" as const, buckets: [BUCKET] };
  const newest = new Map([["x.a.v", { at: 1.6 * HOUR, value: 3 }]]);
  const of = (aggregation: "sum" | "max") =>
    line(cells([0, HOUR], 500), "v", "hour", { newest, plan: { ...plan, aggregation } });
  expect(of("sum")).toMatchObject({ newest: null, times: [0.5 * HOUR, 1.6 * HOUR] });
  expect(of("max").newest).toEqual({ at: 1.6 * HOUR, value: 3 });
});

test("lines of several sources share one axis; what a line does not have is not a gap", () => {
  const tables = {
    a: table("v", [
      [0, 1],
      [2, 2],
    ]),
    b: table("v", [[1, 7]]),
  };
  const shared = aligned(linesOf(view(tables), [ref("v"), ref("v", "b")], SOURCES));
  expect(shared.times).toEqual([0, 1, 2]);
  expect(shared.columns.map(({ values }) => values)).toEqual([
    [1, undefined, 2],
    [undefined, 7, undefined],
  ]);
});

test("ends of runs and values alone have a dot", () => {
  const times = [0, 1, 2, 3, 100, 200, 201, 202, 203];
  const { columns, times: all } = aligned([line(cells(times))]);
  expect(columns[0]!.dots.map((place) => all[place])).toEqual([0, 3, 100, 200, 203]);
});

test("two points of one time are one place on the axis", () => {
  const shared = aligned([line(cells([0, 0, 5]))]);
  expect(shared.times).toEqual([0, 5]);
  expect(shared.columns[0]!.values).toHaveLength(2);
});
