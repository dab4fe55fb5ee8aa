import { expect, test } from "vitest";
import type { Source } from "../api/sources";
import { pointQueries, shownQueries } from "./export-plan";
import type { View } from "./fetch";
import type { BucketPlan } from "./plan";
import { PLAN } from "./plan.fixture";
import { UNREFINED, type Refinement } from "./refinement";

const span = { from: 0, to: 3_600_000 };
const bucket = (fields: string[], shares = false): BucketPlan => ({
  bucketId: "b",
  sourceIds: ["s"],
  refs: [],
  fields,
  shares,
});
const sources = new Map([
  ["s", { schema: { v: { type: "number" }, on: { type: "boolean" }, text: { type: "string" } } } as unknown as Source],
]);
const view = (plan: Partial<View["plan"]>, groupBy: "5m" | "hour" | null): View =>
  ({ span, plan: { ...PLAN, ...plan }, parts: [{ groupBy }] }) as unknown as View;

test("points stay points", () => {
  const [query] = shownQueries(view({ buckets: [bucket(["v", "text"])] }, null), sources);
  expect(query).toMatchObject({ bucketId: "b", filters: { dataSourceIds: ["s"], fields: ["v", "text"] } });
  expect(query).not.toHaveProperty("maxPoints");
  expect(query).not.toHaveProperty("limit");
  expect(pointQueries(PLAN, [{ bucketId: "b", sourceId: "s", field: "v" }], span, sources)).toHaveLength(1);
});

test("averages of the server's choice have its step, their band and shares of switches, and no texts", () => {
  const [query] = shownQueries(view({ buckets: [bucket(["v", "on", "text"])] }, "5m"), sources);
  expect(query).toMatchObject({ groupBy: "5m", aggregation: ["avg", "min", "max", "trueShare"] });
  expect(query?.filters.fields).toEqual(["v", "on"]);
  expect(query).not.toHaveProperty("maxPoints");
  const [shares] = shownQueries(view({ kind: "raw", buckets: [bucket(["on"], true)] }, "5m"), sources);
  expect(shares?.aggregation).toEqual(["trueShare"]);
});

test("the greatest value of a step is asked for by its name", () => {
  const [query] = shownQueries(view({ aggregation: "max", buckets: [bucket(["v"])] }, "5m"), sources);
  expect(query).toMatchObject({ groupBy: "5m", aggregation: "max" });
});

test("groups by name are those of the chart", () => {
  const plan = { kind: "grouped", groupBy: "hour", aggregation: "sum", compare: "7d" } as const;
  const [query] = shownQueries(view({ ...plan, buckets: [bucket(["v"])] }, "hour"), sources);
  expect(query).toMatchObject({ groupBy: "hour", aggregation: "sum", compare: { offset: "7d" } });
  expect(query).not.toHaveProperty("limit");
});

test("what a view leaves out and computes, its files leave out and compute", () => {
  const refinement: Refinement = {
    ...UNREFINED,
    conditions: [{ field: "v", operator: "gt", value: 5 }],
    expressions: [{ name: "double", expression: "v * 2" }],
  };
  const [query] = shownQueries(view({ refinement, buckets: [bucket(["double"])] }, "5m"), sources);
  expect(query).toMatchObject({ groupBy: "5m", aggregation: "avg", expressions: refinement.expressions });
  expect(query?.filters).toMatchObject({ fields: ["v"], values: { v: { gt: 5 } } });
  const fields = ["v", "text"].map((field) => ({ bucketId: "b", sourceId: "s", field }));
  const [points] = pointQueries({ ...PLAN, refinement }, fields, span, sources);
  expect(points?.filters).toMatchObject({ values: { v: { gt: 5 } } });
  const other = { ...refinement, conditions: [{ field: "absent", operator: "gt" as const, value: 5 }] };
  expect(pointQueries({ ...PLAN, refinement: other }, fields, span, sources)).toEqual([]);
});
