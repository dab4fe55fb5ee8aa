import { describe, expect, test } from "vitest";
import { emptyInput, newDraft, type InputDraft, type RuleDraft } from "../pages/rule-draft";
import { emptyCondition, type Condition } from "../pages/rule-kinds";
import { tasksOf, type Task } from "./tasks";

const SOURCES = [{ _id: "s", name: "Pump", schema: { x: { type: "number" as const } } }];

function draft(part: Partial<RuleDraft>, condition: Partial<Condition>, input: Partial<InputDraft> = {}): RuleDraft {
  const inputs = [{ ...emptyInput("x"), ...input }];
  return { ...newDraft("b", "s"), inputs, ...part, condition: { ...emptyCondition(), ...condition } };
}

const one = (of: RuleDraft): Task => {
  const tasks = tasksOf(of, SOURCES);
  if (typeof tasks === "string") throw new Error(tasks);
  return tasks[0]!;
};

describe("tasks", () => {
  test("the steps that are read divide interval and window, groups, and the gap", () => {
    const value = { value: "5" };
    expect(one(draft({ intervalSeconds: "120", windowSeconds: "300" }, value)).readSeconds).toBe(60);
    expect(one(draft({ intervalSeconds: "3600", windowSeconds: "7200" }, value, { grouping: "avg 15m" }))).toMatchObject({
      readSeconds: 900,
      groups: { aggregation: "avg", stepSeconds: 900 },
    });
    expect(one(draft({ kind: "absence", windowSeconds: "600" }, { maxGapSeconds: "90" })).readSeconds).toBe(30);
    expect(one(draft({ windowSeconds: "600" }, value, { windowSeconds: "90" }))).toMatchObject({
      windowSeconds: 90,
      readSeconds: 30,
    });
  });

  test("an outlier needs the points, unless it is one of groups", () => {
    expect(one(draft({ kind: "zscore" }, {})).readSeconds).toBeNull();
    expect(one(draft({ kind: "zscore" }, {}, { grouping: "avg minute" })).readSeconds).toBe(60);
  });

  test("an input of another source is read there", () => {
    expect(one(draft({}, { value: "5" }, { sourceId: "other" })).sourceId).toBe("other");
    expect(one(draft({}, { value: "5" })).sourceId).toBe("s");
  });

  test("the series of an input are read alone", () => {
    const conditions = [{ name: "host", operator: "is" as const, values: ["a"] }];
    expect(one(draft({}, { value: "5" }, { conditions })).dimensions).toEqual({ host: "a" });
    expect(one(draft({}, { value: "5" }, { kept: { dimensions: { host: ["a", null] } } })).dimensions).toEqual({
      host: ["a", null],
    });
    expect(one(draft({}, { value: "5" }, { conditions: [] }))).not.toHaveProperty("dimensions");
  });

  test("what a few queries do not tell is said", () => {
    const cannot = (of: RuleDraft) => tasksOf(of, SOURCES);
    const value = { value: "5" };
    expect(cannot(draft({ kind: null }, {}))).toMatch(/own evaluator/);
    expect(cannot(draft({}, value, { grouping: "p95 minute" }))).toMatch(/every point/);
    expect(cannot(draft({}, value, { grouping: "avg month" }))).toMatch(/length of a step by month/);
    expect(cannot(draft({}, value, { grouping: "avg day", kept: { timezone: "Europe/Oslo" } }))).toMatch(/Oslo/);
    expect(cannot(draft({}, value, { grouping: "avg day", kept: { fill: 0 } }))).toMatch(/filled/);
    expect(cannot(draft({}, value, { grouping: "avg day", groups: ["host"] }))).toMatch(/each group/);
    expect(cannot(draft({ kind: "absence" }, {}, { grouping: "count minute" }))).toMatch(/silence/);
    expect(cannot(draft({ kind: "absence" }, { maxGapSeconds: "0.5" }))).toMatch(/whole seconds/);
  });
});
