import { expect, test } from "vitest";
import type { Source } from "../api/sources";
import { UNSPLIT, namesOf, type DimensionChoice } from "./dimensions";
import { hasBand, planOf, queryOf } from "./plan";
import { UNREFINED } from "./refinement";
import type { ExplorerState } from "./state";

const NOW = Date.UTC(2026, 0, 31);
const DAY = { from: NOW - 86_400_000, to: NOW };
const WIDTH = 1200;

const source = (_id: string, dimensions: Source["dimensions"], seriesCount: number | null): Source =>
  ({
    _id,
    name: _id,
    bucketId: "b",
    dimensions,
    schema: { v: { type: "number" }, w: { type: "number" }, on: { type: "boolean" }, mode: { type: "string" } },
    stats: {
      firstDataPoint: new Date(NOW - 40 * 86_400_000).toISOString(),
      lastDataPoint: new Date(NOW).toISOString(),
      seriesCount,
    },
  }) as unknown as Source;

const SOURCES = [source("cpu", "all", 1000), source("mem", ["host"], 3), source("plain", null, null)];
const BY_ID = new Map(SOURCES.map((one) => [one._id, one]));
const NAMES = namesOf(SOURCES, new Map([["cpu", ["cpu", "host"]]]));

function plan(fields: string[], dimensions: Partial<DimensionChoice>, more: Partial<ExplorerState> = {}) {
  const refs = fields.map((text) => {
    const [sourceId = "", field = ""] = text.split(".");
    return { bucketId: "b", sourceId, field };
  });
  const state: ExplorerState = {
    fields: refs,
    range: { kind: "last", preset: "24h" },
    aggregation: "auto",
    groupBy: "auto",
    compare: null,
    live: false,
    dimensions: { ...UNSPLIT, ...dimensions },
    ...more,
  };
  return planOf(state, BY_ID, DAY, WIDTH, NOW, null, NAMES);
}

test("groups are asked for by name, as many as are kept, in steps that one answer has rows for", () => {
  const made = plan(["cpu.v"], { groups: ["host", "cpu"] });
  expect(made).toMatchObject({ kind: "grouped", aggregation: "avg", groupBy: "5m" });
  expect(hasBand(made)).toBe(false);
  expect(queryOf(made, made.buckets[0]!, DAY)).toMatchObject({
    aggregation: "avg",
    groupBy: "5m",
    groupByDimensions: ["host", "cpu"],
    top: { n: 20, by: "avg", field: "v" },
  });
  // Few series need no coarser steps than the screen does.
  expect(plan(["mem.v"], { groups: ["host"] }).groupBy).toBe("minute");
  expect(plan(["cpu.v"], { groups: ["host"] }, { groupBy: "minute" })).toMatchObject({
    groupBy: "5m",
    coarsenedFrom: "minute",
  });
});

test("each source has groups of its own, by the names that it has", () => {
  const made = plan(["cpu.v", "mem.w", "cpu.w", "plain.v"], { groups: ["host", "cpu"], least: true, top: 5 });
  const queries = made.buckets.map((bucket) => queryOf(made, bucket, DAY));
  expect(queries.map(({ filters }) => [filters.dataSourceIds, filters.fields])).toEqual([
    [["cpu"], ["v", "w"]],
    [["mem"], ["w"]],
    [["plain"], ["v"]],
  ]);
  expect(queries.map(({ groupByDimensions }) => groupByDimensions)).toEqual([["host", "cpu"], ["host"], undefined]);
  expect(queries[1]!.top).toEqual({ n: 5, by: "avg", field: "w", order: "asc" });
  expect(queries[2]).not.toHaveProperty("top");
});

test("many fields have fewer groups each", () => {
  const fields = Array.from({ length: 24 }, (_, n) => (n % 2 === 0 ? "cpu.v" : "mem.w"));
  expect(plan(fields, { groups: ["host"] }).dimensions.top).toBe(8);
});

test("sources together have groups of all, for each field", () => {
  const made = plan(["cpu.v", "mem.v", "mem.w"], { groups: ["host"] }, { refinement: { ...UNREFINED, merged: true } });
  const queries = made.buckets.map((bucket) => queryOf(made, bucket, DAY));
  expect(queries.map(({ filters, mergeSources }) => [filters.dataSourceIds, filters.fields, mergeSources])).toEqual([
    [["cpu", "mem"], ["v"], true],
    [["mem"], ["w"], true],
  ]);
});

test("a condition leaves out sources of which no series can match, and stands in no question to the others", () => {
  const conditions = [{ name: "cpu", operator: "is" as const, values: ["0"] }];
  const made = plan(["cpu.v", "mem.v"], { conditions });
  expect(made).toMatchObject({ kind: "auto", unmatched: ["mem"] });
  expect(queryOf(made, made.buckets[0]!, DAY).filters.dimensions).toEqual({ cpu: "0" });
  const absent = plan(["mem.v"], { conditions: [{ name: "cpu", operator: "absent", values: [] }] });
  expect(queryOf(absent, absent.buckets[0]!, DAY).filters).not.toHaveProperty("dimensions");
});

test("groups have numbers only; counts have all, and are compared by a number where there is one", () => {
  expect(plan(["cpu.v", "cpu.on", "cpu.mode"], { groups: ["host"] }).leftOut).toEqual(["on", "mode"]);
  const counted = plan(["cpu.mode", "cpu.v"], { groups: ["host"] }, { aggregation: "count" });
  expect(counted.buckets).toMatchObject([{ fields: ["mode", "v"], ranked: "v" }]);
  expect(plan(["cpu.mode"], { groups: ["host"] }, { aggregation: "count" }).buckets[0]).not.toHaveProperty("ranked");
  expect(plan(["cpu.v"], { groups: ["host"] }, { groupBy: "raw" })).toMatchObject({ kind: "raw" });
});
