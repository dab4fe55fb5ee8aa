import { describe, expect, test } from "vitest";
import type { Source } from "../api/sources";
import type { Catalog } from "./catalog";
import { PLAN } from "./plan.fixture";
import { planOf, queryOf } from "./plan";
import {
  CONDITIONS_MAX,
  EXPRESSIONS_MAX,
  UNREFINED,
  countOf,
  metadataValueOf,
  operandsOf,
  readRefinement,
  storedFields,
  valueOf,
  withExpressions,
  writeRefinement,
  writtenMetadata,
  type Refinement,
} from "./refinement";
import { linesOf } from "./series";
import type { ExplorerState } from "./state";
import { tablesOf } from "./table";

const NOW = Date.UTC(2026, 0, 31);
const DAY = 86_400_000;

const source = (id: string, schema: Source["schema"]) =>
  ({
    _id: id,
    bucketId: "b",
    name: id.toUpperCase(),
    schema,
    stats: { firstDataPoint: null, lastDataPoint: null },
  }) as Source;

const PUMP = source("pump", {
  power: { type: "number", unit: "kW" },
  on: { type: "boolean" },
  flow: { type: "number" },
});
const TANK = source("tank", { power: { type: "number", unit: "kW" }, level: { type: "number" } });
const SOURCES = new Map([PUMP, TANK].map((one) => [one._id, one]));

const refined = (part: Partial<Refinement>): Refinement => ({ ...UNREFINED, ...part });
const view = (fields: string[], refinement: Refinement, more: Partial<ExplorerState> = {}): ExplorerState => ({
  fields: fields.map((text) => ({ bucketId: "b", sourceId: text.split(".")[0]!, field: text.split(".")[1]! })),
  range: { kind: "last", preset: "24h" },
  aggregation: "auto",
  groupBy: "auto",
  compare: null,
  live: false,
  refinement,
  ...more,
});
const span = { from: NOW - DAY, to: NOW };
const planned = (state: ExplorerState, sources: ReadonlyMap<string, Source> = SOURCES) =>
  planOf(state, sources, span, 1000, NOW);

test("a refinement comes back from the URL as it was", () => {
  const refinement = refined({
    conditions: [
      { field: 'a"b', operator: "gte", value: -1.5 },
      { field: "mode", operator: "eq", value: "auto" },
    ],
    metadata: [{ name: "site.hall", value: "5" }],
    expressions: [{ name: "efficiency", expression: "flow / power" }],
    merged: true,
  });
  const search = new URLSearchParams();
  writeRefinement(refinement, search);
  expect(readRefinement(new URLSearchParams(search.toString()))).toEqual(refinement);
  expect(countOf(refinement)).toBe(5);
});

test.each(["where=x", 'where=["a","like",1]', 'where=["a","gt",null]', 'meta=["a"]', 'calc=["",""]', "merge=2"])(
  "%s says nothing",
  (text) => expect(countOf(readRefinement(new URLSearchParams(text)))).toBe(0),
);

test("an address has as many conditions and expressions as a view takes", () => {
  const search = new URLSearchParams();
  for (let n = 0; n < 40; n++) {
    search.append("where", JSON.stringify([`f${n}`, "gt", n]));
    search.append("meta", JSON.stringify([`m${n}`, n]));
    search.append("calc", JSON.stringify([`c${n % 20}`, "power"]));
  }
  const { conditions, metadata, expressions } = readRefinement(search);
  expect([conditions.length, metadata.length, expressions.length]).toEqual([
    CONDITIONS_MAX,
    CONDITIONS_MAX,
    EXPRESSIONS_MAX,
  ]);
  expect(new Set(expressions.map(({ name }) => name)).size).toBe(EXPRESSIONS_MAX);
});

test.each([
  ["flow / power", ["flow", "power"]],
  ["max(abs(`motor temp`), -1e3 * x1)", ["motor temp", "x1"]],
  ["min + round(`a``b`, 2)", ["min", "a`b"]],
  ["2.5 * (3)", []],
])("the operands of %s", (expression, operands) => expect(operandsOf(expression)).toEqual(operands));

test("a computed field stands in the schema of sources that have what it is computed of", () => {
  const catalog = { buckets: [], byId: SOURCES } as Catalog;
  const { byId } = withExpressions(catalog, [{ name: "ratio", expression: "flow / power" }]);
  expect(byId.get("pump")!.schema["ratio"]).toEqual({ type: "number", expression: "flow / power" });
  expect(byId.get("tank")!.schema["ratio"]).toBeUndefined();
});

describe("queries", () => {
  test("say what is filtered and computed, and name no computed field", () => {
    const refinement = refined({
      conditions: [
        { field: "power", operator: "gt", value: 1 },
        { field: "power", operator: "lt", value: 9 },
      ],
      metadata: [{ name: "site", value: "north" }],
      expressions: [{ name: "ratio", expression: "flow / power" }],
    });
    const { byId } = withExpressions({ buckets: [], byId: SOURCES }, refinement.expressions);
    const plan = planned(view(["pump.ratio", "pump.on"], refinement), byId);
    expect(queryOf(plan, plan.buckets[0]!, span)).toMatchObject({
      filters: { fields: ["on"], values: { power: { gt: 1, lt: 9 } }, metadata: { site: "north" } },
      expressions: [{ name: "ratio", expression: "flow / power" }],
      maxPoints: 1000,
    });
    expect(storedFields(refinement, ["ratio"])).toEqual(["flow", "power"]);
    // The least of a computed value is not in the band of averages.
    expect(planned(view(["pump.ratio"], refinement, { aggregation: "min" }), byId).kind).toBe("grouped");
  });

  test("leave out sources of which no point can match", () => {
    const plan = planned(
      view(["pump.power", "tank.power"], refined({ conditions: [{ field: "flow", operator: "gt", value: 0 }] })),
    );
    expect(plan.buckets.map(({ sourceIds }) => sourceIds)).toEqual([["pump"]]);
    expect(plan.unmatched).toEqual(["TANK"]);
  });

  test("have sources together in groups, but not as raw points", () => {
    const merged = refined({ merged: true });
    const plan = planned(view(["pump.power", "tank.power", "pump.on"], merged));
    expect(plan).toMatchObject({ kind: "grouped", leftOut: ["on"] });
    expect(plan.buckets).toHaveLength(1);
    expect(queryOf(plan, plan.buckets[0]!, span)).toMatchObject({
      mergeSources: true,
      filters: { dataSourceIds: ["pump", "tank"] },
    });
    const raw = planned(view(["pump.power"], merged, { groupBy: "raw" }));
    expect(queryOf(raw, raw.buckets[0]!, span)).not.toHaveProperty("mergeSources");
  });
});

test("sources together are one line for each field", () => {
  const state = view(["pump.power", "tank.power", "tank.level"], refined({ merged: true }));
  const plan = { ...PLAN, ...planned(state), groupBy: "hour" as const };
  const timestamp = [0, 1].map((hour) => new Date(span.from + hour * 3_600_000).toISOString());
  const tables = tablesOf({ timestamp, values: { power: [1, 2], level: [3, null] } });
  const part = { tables, groupBy: "hour" as const, points: null, truncated: false };
  const lines = linesOf(
    { span, plan, parts: [part], latest: [], newest: new Map(), tookMs: 1, readAt: 0 },
    state.fields,
    SOURCES,
  );
  expect(lines.map(({ label, unit, values }) => [label, unit, values])).toEqual([
    ["2 sources · power", "kW", [1, 2]],
    ["TANK · level", "", [3]],
  ]);
});

test("values are read by the type of their field, metadata by how they are written", () => {
  expect([
    valueOf("5.5", "number"),
    valueOf("5,5", "number"),
    valueOf("true", "boolean"),
    valueOf("x", "boolean"),
  ]).toEqual([5.5, null, true, null]);
  for (const [text, value] of [
    ["5", 5],
    ['"5"', "5"],
    ["2.4.1", "2.4.1"],
    ["true", true],
    [" north ", "north"],
    [" ", null],
  ] as const)
    expect(metadataValueOf(text)).toBe(value);
  for (const value of ["5", "true", "north", 5, false]) expect(metadataValueOf(writtenMetadata(value))).toBe(value);
});
