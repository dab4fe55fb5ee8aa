import { describe, expect, test } from "vitest";
import type { Columns } from "../api/query";
import { byGroup, joined, onlyExtremes, tablesOf } from "./table";

const iso = (second: number) => new Date(second * 1000).toISOString();
const columns = (rows: [second: number, source: string, value: number | null][]): Columns => ({
  timestamp: rows.map(([second]) => iso(second)),
  dataSourceId: rows.map(([, source]) => source),
  values: { v: rows.map(([, , value]) => value) },
});

describe("tables", () => {
  test("each source has its own rows, in order of time whatever the answer's order was", () => {
    const rows: [number, string, number][] = [
      [1, "a", 1],
      [1, "b", 7],
      [2, "a", 2],
    ];
    for (const order of [rows, rows.toReversed()]) {
      const tables = tablesOf(columns(order));
      expect(tables.get("a")).toMatchObject({ times: [1000, 2000], values: new Map([["v", [1, 2]]]) });
      expect(tables.get("b")).toMatchObject({ times: [1000], values: new Map([["v", [7]]]) });
    }
  });

  test("groups by dimensions have their own rows, absent values too", () => {
    const tables = tablesOf({
      ...columns([[1, "a", 1], [1, "a", 2], [1, "b", 3], [2, "a", 4]]),
      dimensions: { host: [null, "x", "x", "x"], cpu: ["0", "0", "0", "0"] },
    });
    expect([...tables.values()].map(({ sourceId, group, values }) => [sourceId, group, values.get("v")])).toEqual([
      ["a", [["host", null], ["cpu", "0"]], [1]],
      ["a", [["host", "x"], ["cpu", "0"]], [2, 4]],
      ["b", [["host", "x"], ["cpu", "0"]], [3]],
    ]);
  });

  test("groups stand in the order in which people look for them", () => {
    const group = (...values: (string | null)[]) => ({ group: values.map((value, n) => [`d${n}`, value] as const) });
    const sorted = [group("web-10", "a"), group("web-2", "b"), group("web-2", null), group(null, "z")].sort(byGroup);
    expect(sorted.map((one) => one.group.map(([, value]) => value))).toEqual([
      [null, "z"],
      ["web-2", null],
      ["web-2", "b"],
      ["web-10", "a"],
    ]);
  });

  test("a field may be called anything", () => {
    const hostile = JSON.parse('{"__proto__": [1]}') as Record<string, number[]>;
    const tables = tablesOf({ timestamp: [iso(1)], dataSourceId: ["a"], values: hostile });
    expect(tables.get("a")?.values.get("__proto__")).toEqual([1]);
  });

  test("the least or the greatest stands in the place of an average", () => {
    const averages = tablesOf({ ...columns([[1, "a", 5]]), stats: { v: { min: [2], max: [9] } } });
    const drawn = (extreme: "min" | "max") => onlyExtremes(averages, extreme).get("a")!;
    expect(drawn("min").values.get("v")).toEqual([2]);
    expect(drawn("max")).toMatchObject({ values: new Map([["v", [9]]]), lows: new Map(), highs: new Map() });
  });

  test("a tail takes the place of what it reads again, and what has left the span is dropped", () => {
    const before = tablesOf(columns([1, 2, 3, 4].map((second) => [second, "a", second])));
    const tail = tablesOf({
      ...columns([
        [3, "a", 30],
        [5, "a", 50],
        [5, "b", 7],
      ]),
      metadata: [null, { late: true }, null],
    });
    const all = joined(before, tail, 2000, 3000);
    expect(all.get("a")?.values.get("v")).toEqual([2, 30, 50]);
    expect(all.get("b")?.values.get("v")).toEqual([7]);
  });
});
