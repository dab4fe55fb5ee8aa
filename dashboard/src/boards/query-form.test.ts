import { expect, test } from "vitest";
import type { BoardContent } from "../api/boards";
import type { Catalog } from "../explorer/catalog";
import { formOf, queryOfForm, type QueryForm } from "./query-form";
import { dimensionOfVariable } from "./variables";

const FORM: QueryForm = {
  bucketId: "b",
  sourceIds: ["s"],
  fields: ["v"],
  aggregation: "band",
  groupBy: "15m",
  merge: false,
  conditions: [
    { name: "host", operator: "is", values: ["$host"] },
    { name: "cpu", operator: "not", values: ["total"] },
  ],
  groups: ["host", "cpu"],
  top: "20",
  least: true,
};

test("groups and conditions on dimensions are said in a query, and come back from it", () => {
  const query = queryOfForm(FORM, "lines");
  expect(query).toMatchObject({
    filters: { dimensions: { host: "$host", cpu: { not: "total" } } },
    groupByDimensions: ["host", "cpu"],
    top: { n: 20, by: "avg", field: "v", order: "asc" },
  });
  expect(formOf(query)).toEqual(FORM);
  const all = { ...FORM, top: "", least: false };
  expect(queryOfForm(all, "lines")).not.toHaveProperty("top");
  expect(formOf(queryOfForm(all, "lines"))).toEqual(all);
});

test("without groups or an aggregation there is no top", () => {
  expect(queryOfForm({ ...FORM, groups: [] }, "lines")).not.toHaveProperty("top");
  const raw = queryOfForm({ ...FORM, aggregation: "" }, "lines");
  for (const member of ["groupByDimensions", "top"]) expect(raw).not.toHaveProperty(member);
});

test.each([
  { filters: { dimensions: { host: ["a", null] } } },
  { groupByDimensions: [5] },
  { aggregation: "avg", groupBy: "hour", groupByDimensions: ["host"], top: { n: 5, by: "max", field: "v" } },
])("a query that says more than the fields can stays JSON: %j", (query) => {
  expect(formOf({ bucketId: "b", ...query })).toBeNull();
});

test("a variable that stands for a value of a dimension is told from others", () => {
  const source = (_id: string, dimensions: unknown) => ({ _id, bucketId: "b", dimensions });
  const sources = [source("s", ["host"]), source("all", "all"), source("none", null)];
  const catalog = { buckets: [{ bucket: { _id: "b" }, sources }] } as unknown as Catalog;
  const variables = [
    { name: "host", default: null, values: null },
    { name: "source", default: "all", values: null },
  ];
  const query = { ...queryOfForm(FORM, "lines"), filters: { dataSourceIds: ["s", "$source"], dimensions: { host: ["$host"] } } };
  const board = { variables, panels: [{ query: { bucketId: "b" } }, { query }] } as unknown as BoardContent;
  const state = { range: null, values: new Map<string, string>(), wall: false };
  const path = (sourceId: string) => ({ bucketId: "b", sourceId });
  expect(dimensionOfVariable("host", board, state, catalog)).toEqual({ name: "host", sources: [path("s"), path("all")] });
  expect(dimensionOfVariable("source", board, state, catalog)).toBeNull();
});
