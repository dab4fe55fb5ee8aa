import { describe, expect, test } from "vitest";
import type { Source } from "../api/sources";
import { RAW_POINTS_MAX, callsOf, planOf, queryOf } from "./plan";
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
    status: "active",
    stats: {
      totalDataPoints: intervalSeconds === null ? 1 : (days * 86_400) / intervalSeconds,
      firstDataPoint: new Date(NOW - days * DAY).toISOString(),
      lastDataPoint: new Date(NOW).toISOString(),
      averageIntervalSeconds: intervalSeconds,
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
    live: false,
    ...more,
  };
}

const sources = (...all: Source[]) => new Map(all.map((one) => [one._id, one]));
const last = (days: number) => ({ from: NOW - days * DAY, to: NOW });

describe("automatic", () => {
  test("points themselves while the screen can show them, in one call", () => {
    const plan = planOf(state(["a.v"]), sources(source("a", 60)), last(1), 1200, NOW);
    expect(plan).toMatchObject({ kind: "raw", groupBy: null });
    expect(callsOf(plan)).toBe(1);
    expect(queryOf(plan, plan.buckets[0]!, last(1))).toMatchObject({ downsampling: false, sort: "desc" });
  });

  test("the server's own averages where they are as fine as the screen", () => {
    const plan = planOf(state(["a.v"]), sources(source("a", 60)), last(7), 1200, NOW);
    expect(plan).toMatchObject({ kind: "server", groupBy: "hour" });
    const query = queryOf(plan, plan.buckets[0]!, last(7));
    expect(query.aggregation).toBeUndefined();
    expect(query.downsampling).toBeUndefined();
  });

  test("finer than the server by itself, where the screen has room", () => {
    const plan = planOf(state(["a.v"]), sources(source("a", 1)), last(1), 1200, NOW);
    expect(plan).toMatchObject({ kind: "grouped", groupBy: "minute", aggregation: "avg" });
    expect(callsOf(plan)).toBe(4);
  });

  test("asked for by name where a source is never downsampled", () => {
    const plan = planOf(state(["a.v"]), sources(source("a", 60, { downsampling: false })), last(7), 1200, NOW);
    expect(plan).toMatchObject({ kind: "grouped", groupBy: "hour" });
  });

  test("a million points are some hundred rows, and never more than an answer holds", () => {
    const many = Array.from({ length: 24 }, (_, index) => source(`s${index}`, 1));
    for (const days of [1, 7, 30, 365]) {
      const plan = planOf(state(many.map((one) => `${one._id}.v`)), sources(...many), last(days), 1400, NOW);
      expect(plan.kind).not.toBe("raw");
      const seconds = { minute: 60, hour: 3600, day: 86_400, week: 604_800, month: 2_592_000 }[plan.groupBy!];
      expect((24 * days * 86_400) / seconds).toBeLessThanOrEqual(10_000);
    }
  });

  test("a range without points is one raw question", () => {
    const plan = planOf(
      state(["a.v"]),
      sources(source("a", 60)),
      { from: NOW - 900 * DAY, to: NOW - 800 * DAY },
      1200,
      NOW,
    );
    expect(plan).toMatchObject({ kind: "raw", expectedPoints: 0 });
  });

  test("texts and switches are points, and groups leave them out by name", () => {
    expect(planOf(state(["a.on", "a.mode"]), sources(source("a", 1)), last(30), 1200, NOW).kind).toBe("raw");
    const mixed = planOf(state(["a.v", "a.on"]), sources(source("a", 1)), last(30), 1200, NOW);
    expect(mixed.leftOut).toEqual(["on"]);
    expect(mixed.buckets[0]).toMatchObject({ fields: ["v"], tableFields: ["v", "on"] });
  });

  test("one query for each bucket", () => {
    const plan = planOf(
      state(["a.v.b1", "a.on.b1", "c.v.b2"]),
      sources(source("a", 60), source("c", 60)),
      last(1),
      1200,
      NOW,
    );
    const field = (sourceId: string, name: string, bucketId: string) => ({ bucketId, sourceId, field: name });
    expect(plan.buckets).toEqual([
      {
        bucketId: "b1",
        sourceIds: ["a"],
        refs: [field("a", "v", "b1"), field("a", "on", "b1")],
        fields: ["v", "on"],
        tableFields: ["v", "on"],
      },
      { bucketId: "b2", sourceIds: ["c"], refs: [field("c", "v", "b2")], fields: ["v"], tableFields: ["v"] },
    ]);
  });
});

describe("asked for", () => {
  test("a grouping that fits is what it says", () => {
    expect(planOf(state(["a.v"], { groupBy: "day" }), sources(source("a", 60)), last(30), 1200, NOW)).toMatchObject({
      groupBy: "day",
      coarsenedFrom: null,
    });
  });

  test("one that does not fit is coarser, and says so", () => {
    expect(planOf(state(["a.v"], { groupBy: "minute" }), sources(source("a", 60)), last(30), 1200, NOW)).toMatchObject({
      groupBy: "hour",
      coarsenedFrom: "minute",
    });
  });

  test("raw is raw, however much", () => {
    const plan = planOf(state(["a.v"], { groupBy: "raw" }), sources(source("a", 1)), last(30), 1200, NOW);
    expect(plan.expectedPoints).toBeGreaterThan(RAW_POINTS_MAX);
    expect(plan.kind).toBe("raw");
  });

  test("other aggregations have no band and cost one call; counts cover all fields", () => {
    const most = planOf(state(["a.v"], { aggregation: "max" }), sources(source("a", 60)), last(1), 1200, NOW);
    expect(callsOf(most)).toBe(2);
    expect(
      planOf(state(["a.mode"], { aggregation: "count" }), sources(source("a", 60)), last(1), 1200, NOW),
    ).toMatchObject({ kind: "grouped", leftOut: [] });
  });
});
