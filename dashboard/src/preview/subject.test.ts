import { describe, expect, test } from "vitest";
import type { Line } from "../explorer/series";
import { emptyInput, newDraft, type InputDraft, type RuleDraft } from "../pages/rule-draft";
import { emptyCondition, type Condition } from "../pages/rule-kinds";
import { spokenChart, stateOf, zonesOf } from "./subject";

const SOURCES = [
  {
    _id: "s",
    name: "Pump",
    schema: { x: { type: "number" as const }, on: { type: "boolean" as const }, mode: { type: "string" as const } },
  },
];

function draft(part: Partial<RuleDraft>, condition: Partial<Condition>, input: Partial<InputDraft> = {}): RuleDraft {
  const inputs = [{ ...emptyInput("x"), ...input }];
  return { ...newDraft("b", "s"), inputs, ...part, condition: { ...emptyCondition(), ...condition } };
}

describe("the chart of a rule", () => {
  test("a threshold has a zone on its side, equality a line", () => {
    const zones = (operator: string, value = "5") => zonesOf(draft({}, { operator, value }), SOURCES);
    expect(zones("gt")).toEqual([{ low: 5, high: Infinity }]);
    expect(zones("lte")).toEqual([{ low: -Infinity, high: 5 }]);
    expect(zones("neq")).toEqual([{ low: 5, high: 5 }]);
    expect(zones("gt", "")).toEqual([]);
    expect(zones("gt", "5,5")).toEqual([]);
  });

  test("switches have a line, texts none", () => {
    const equal = { operator: "eq", value: "true" };
    expect(zonesOf(draft({}, equal, { field: "on" }), SOURCES)).toEqual([{ low: 1, high: 1 }]);
    expect(zonesOf(draft({}, equal, { field: "mode" }), SOURCES)).toEqual([]);
  });

  test("a range has its inside, or both sides, as far as they are typed", () => {
    const zones = (condition: Partial<Condition>) => zonesOf(draft({ kind: "range" }, condition), SOURCES);
    const outside = [
      { low: -Infinity, high: 2 },
      { low: 5, high: Infinity },
    ];
    expect(zones({ low: "2", high: "5" })).toEqual(outside);
    expect(zones({ low: "2", high: "5", inside: true })).toEqual([{ low: 2, high: 5 }]);
    expect(zones({ low: "2" })).toEqual([outside[0]]);
    expect(zones({ low: "2", inside: true })).toEqual([]);
    expect(zones({ low: "6", high: "5" })).toEqual([]);
  });

  test("groups are drawn as groups where the chart has them", () => {
    const drawn = (grouping: string) => stateOf(draft({}, {}, { grouping }), SOURCES);
    expect(drawn("")).toMatchObject({ aggregation: "auto", groupBy: "auto" });
    expect(drawn("max 15m")).toMatchObject({ aggregation: "max", groupBy: "15m" });
    expect(drawn("max 60m")).toMatchObject({ aggregation: "max", groupBy: "hour" });
    expect(drawn("max 30d")).toMatchObject({ aggregation: "auto", groupBy: "auto" });
    expect(drawn("max 7m")).toMatchObject({ aggregation: "auto", groupBy: "auto" });
    expect(stateOf(draft({}, {}, { field: "" }), SOURCES)).toBeNull();
    expect(stateOf(draft({}, {}, { field: "gone" }), SOURCES)).toBeNull();
  });

  test("the chart in words", () => {
    const line = { label: "Pump · x", unit: "mm/s", values: [1, null, 4], lows: null, highs: null, newest: null };
    expect(spokenChart(line as unknown as Line, [{ low: 3, high: Infinity }], 2, "firing")).toBe(
      "Pump · x: from 1 mm/s to 4 mm/s; line at 3 mm/s; 2 firings marked.",
    );
    expect(spokenChart({ ...line, values: [null] } as unknown as Line, [], 0, "firing")).toBe("");
  });
});
