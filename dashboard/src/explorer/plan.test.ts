import { describe, expect, test } from "vitest";
import type { Source } from "../api/sources";
import { hasBand, planOf, queryOf } from "./plan";
import type { ExplorerState } from "./state";

const NOW = Date.UTC(2026, 0, 31);
const DAY = 86_400_000;

function source(id: string, intervalSeconds: number | null, more: Partial<Source> = {}): Source {
  const days = 400;
  return {
    _id: id,
    bucketId: "b",
    name: id,
    type: "sensor",
    schema: { v: { type: "number" }, on: { type: "boolean" }, mode: { type: "string" } },
    schemaMode: "strict",
    downsampling: true,
    dimensions: null,
    duplicates: "keep",
    expectedIntervalSeconds: null,
    freshness: "unknown",
    status: "active",
    stats: {
      totalDataPoints: intervalSeconds === null ? 1 : (days * 86_400) / intervalSeconds,
      firstDataPoint: new Date(NOW - days * DAY).toISOString(),
      lastDataPoint: new Date(NOW).toISOString(),
      averageIntervalSeconds: intervalSeconds,
      seriesCount: null,
    },
    createdAt: "",
    updatedAt: "",
    ...more,
  };
}

function state(fields: string[], more: Partial<ExplorerState> = {}): ExplorerState {
  const refs = fields.map((text) => {
    const [sourceId = "", field = "", bucketId = "b"] = text.split(".");
    return { bucketId, sourceId, field };
  });
  return {
    fields: refs,
    range: { kind: "last", preset: "24h" },
    aggregation: "auto",
    groupBy: "auto",
    compare: null,
    live: false,
    ...more,
  };
}

const sources = (...all: Source[]) => new Map(all.map((one) => [one._id, one]));
const last = (days: number) => ({ from: NOW - days * DAY, to: NOW });

describe("automatic", () => {
  test("the server chooses, by the width of the screen", () => {
    const plan = planOf(state(["a.v", "a.on", "a.mode"]), sources(source("a", 1)), last(7), 1200, NOW);
    expect(plan).toMatchObject({ kind: "auto", maxPoints: 1200, leftOut: [] });
    const query = queryOf(plan, plan.buckets[0]!, last(7));
    expect(query).toMatchObject({ maxPoints: 1200, filters: { fields: ["v", "on", "mode"] } });
    for (const member of ["aggregation", "groupBy", "limit", "downsampling"]) expect(query).not.toHaveProperty(member);
  });

  test.each([
    [40, 100],
    [20_000, 10_000],
  ])("a width of %s px asks for %s points", (width, maxPoints) => {
    expect(planOf(state(["a.v"]), sources(source("a", 1)), last(1), width, NOW).maxPoints).toBe(maxPoints);
  });

  test("sources that one answer has no rows for are asked for in another", () => {
    const many = Array.from({ length: 20 }, (_, index) => source(`s${index}`, 1));
    const plan = planOf(state(many.map((one) => `${one._id}.v`)), sources(...many), last(1), 1200, NOW);
    expect(plan.buckets.map(({ sourceIds }) => sourceIds.length)).toEqual([8, 8, 4]);
    expect(plan.buckets.flatMap(({ refs }) => refs)).toHaveLength(20);
  });

  test("texts alone are points", () => {
    const plan = planOf(state(["a.mode"]), sources(source("a", 1)), last(30), 1200, NOW);
    expect(plan.kind).toBe("raw");
    expect(queryOf(plan, plan.buckets[0]!, last(30))).toMatchObject({ sort: "desc", downsampling: false });
  });

  test("one query for each bucket", () => {
    const all = sources(source("a", 60), source("c", 60));
    const plan = planOf(state(["a.v.b1", "a.on.b1", "c.v.b2"]), all, last(1), 1200, NOW);
    const field = (sourceId: string, name: string, bucketId: string) => ({ bucketId, sourceId, field: name });
    expect(plan.buckets).toEqual([
      {
        bucketId: "b1",
        sourceIds: ["a"],
        refs: [field("a", "v", "b1"), field("a", "on", "b1")],
        fields: ["v", "on"],
        shares: false,
      },
      { bucketId: "b2", sourceIds: ["c"], refs: [field("c", "v", "b2")], fields: ["v"], shares: false },
    ]);
  });
});

describe("asked for by name", () => {
  const minutely = sources(source("a", 60));

  test("a grouping that fits is what it says; one that does not is coarser, and says so", () => {
    const by = (groupBy: ExplorerState["groupBy"]) =>
      planOf(state(["a.v"], { groupBy }), minutely, last(30), 1200, NOW);
    expect(by("day")).toMatchObject({ kind: "grouped", groupBy: "day", coarsenedFrom: null });
    expect(by("minute")).toMatchObject({ kind: "grouped", groupBy: "5m", coarsenedFrom: "minute" });
    expect(by("raw")).toMatchObject({ kind: "raw", groupBy: null });
  });

  test("a sum takes the unit that the screen has room for, however rarely a source sends", () => {
    const sum = (days: number) => planOf(state(["a.v"], { aggregation: "sum" }), minutely, last(days), 1200, NOW);
    expect([0.5, 1, 7, 60].map((days) => sum(days).groupBy)).toEqual(["minute", "minute", "15m", "hour"]);
    expect(hasBand(sum(1))).toBe(false);
  });

  test.each(["avg", "min", "max"] as const)("%s without a unit has the steps of automatic views", (aggregation) => {
    const plan = planOf(state(["a.v", "a.mode"], { aggregation }), minutely, last(1), 1200, NOW);
    expect(plan).toMatchObject({ kind: "auto", aggregation, groupBy: null, leftOut: [] });
    const query = queryOf(plan, plan.buckets[0]!, last(1));
    expect(query).toMatchObject({ maxPoints: 1200, filters: { fields: ["v", "mode"] } });
    expect(query).not.toHaveProperty("aggregation");
    expect(hasBand(plan)).toBe(aggregation === "avg");
    const byHour = planOf(state(["a.v"], { aggregation, groupBy: "hour" }), minutely, last(1), 1200, NOW);
    expect(byHour).toMatchObject({ kind: "grouped", groupBy: "hour" });
  });

  test("averages leave out texts, counts nothing", () => {
    const averaged = planOf(state(["a.v", "a.on", "a.mode"], { groupBy: "hour" }), minutely, last(30), 1200, NOW);
    expect(averaged).toMatchObject({ leftOut: ["mode"] });
    expect(averaged.buckets[0]).toMatchObject({ fields: ["v"], shares: false });
    const counted = planOf(state(["a.mode"], { aggregation: "count" }), minutely, last(1), 1200, NOW);
    expect(counted).toMatchObject({ kind: "grouped", leftOut: [] });
  });

  test.each([
    [{ groupBy: "hour" }, 1200],
    [{ groupBy: "raw" }, 10_000],
    [{ aggregation: "sum" }, 1200],
    [{ aggregation: "max", groupBy: "day" }, 1200],
    [{ aggregation: "min" }, 1200],
  ] as const)("booleans with %j are asked for with %s points at most", (chosen, maxPoints) => {
    for (const fields of [["a.on"], ["a.v", "a.on"]]) {
      const plan = planOf(state(fields, chosen), minutely, last(30), 1200, NOW);
      const bucket = plan.buckets.at(-1)!;
      expect(bucket).toMatchObject({ fields: ["on"], refs: [{ field: "on" }], shares: true });
      const query = queryOf(plan, bucket, last(30));
      expect(query).toMatchObject({ maxPoints });
      for (const member of ["aggregation", "groupBy", "limit", "sort"]) expect(query).not.toHaveProperty(member);
    }
    const counted = planOf(state(["a.on"], { aggregation: "count" }), minutely, last(30), 1200, NOW);
    expect(counted.buckets).toMatchObject([{ fields: ["on"], shares: false }]);
  });
});

describe("questions by name", () => {
  const plan = (more: Partial<ExplorerState>) =>
    planOf(state(["a.v", "a.on", "a.mode"], more), sources(source("a", 60)), last(7), 1200, NOW);

  test("what rollups do not hold is grouped by a step that the screen can show", () => {
    const asked = plan({ aggregation: "p95" });
    expect(asked).toMatchObject({ kind: "grouped", aggregation: "p95", groupBy: "15m" });
    expect(queryOf(asked, asked.buckets[0]!, last(7))).toMatchObject({
      aggregation: "p95",
      groupBy: "15m",
      filters: { fields: ["v"] },
    });
  });

  test("distinct values are counted of every type", () => {
    expect(plan({ aggregation: "distinct" }).buckets[0]!.fields).toEqual(["v", "on", "mode"]);
  });

  test("a comparison asks for groups, with the band in the same query", () => {
    const asked = plan({ compare: "7d" });
    expect(queryOf(asked, asked.buckets[0]!, last(7))).toMatchObject({
      aggregation: ["avg", "min", "max"],
      compare: { offset: "7d" },
    });
    expect(plan({ compare: "7d", groupBy: "raw" })).toMatchObject({ kind: "raw", compare: null });
  });
});
