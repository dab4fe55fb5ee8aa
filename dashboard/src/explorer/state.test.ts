import { expect, test } from "vitest";
import { routeOf } from "../app/hash";
import { FIELDS_MAX, exploreHref, readFields, readState, writeState, type ExplorerState } from "./state";

const BUCKET = "6b017645964fc6a0f1c99840";
const SOURCE = "6b017645964fc6a0f1c9984a";

test("a state comes back from its address, whatever a field is called", () => {
  const state: ExplorerState = {
    fields: ["vibration", "a.b", "100 % & more=1#x/?", "<b>", "ünï"].map((field) => ({
      bucketId: BUCKET,
      sourceId: SOURCE,
      field,
    })),
    range: { kind: "last", preset: "7d" },
    aggregation: "max",
    groupBy: "15m",
    compare: "7d",
    live: true,
  };
  const route = routeOf(writeState(state));
  expect(route.path).toEqual(["explore"]);
  expect(readState(route.search)).toEqual(state);
});

test("what is no state is the default, and ids that are none are left out", () => {
  const search = new URLSearchParams([
    ["f", "x.y.z"],
    ["f", `${BUCKET}.${SOURCE}.`],
    ["agg", "mode"],
    ["vs", "2d"],
    ["by", "second"],
    ["live", "1"],
    ["from", "2026-01-01"],
    ["to", "2026-01-02"],
  ]);
  expect(readState(search)).toMatchObject({ fields: [], aggregation: "auto", groupBy: "auto", compare: null, live: false });
});

test("a field stands once, and lines have a bound", () => {
  const many = Array.from({ length: 40 }, (_, index) => ({
    bucketId: BUCKET,
    sourceId: SOURCE,
    field: `f${index % 30}`,
  }));
  const search = new URLSearchParams(many.map((ref) => ["f", `${ref.bucketId}.${ref.sourceId}.${ref.field}`]));
  expect(readState(search).fields).toHaveLength(FIELDS_MAX);
  expect(readFields(search)).toHaveLength(30);
  expect(routeOf(exploreHref(many)).search.getAll("f")).toHaveLength(FIELDS_MAX);
});
