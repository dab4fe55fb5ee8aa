/** Windows made of steps against the same windows read row by row. */
import { describe, expect, test } from "vitest";
import type { Aggregation, Value } from "../api/query";
import type { Outcome, Parameter } from "../api/rules";
import type { Row } from "../conditions/entry";
import { evaluate } from "../conditions/evaluate";
import { passes } from "../conditions/matching";
import type { Kind } from "../pages/rule-kinds";
import { commonStep, STEPS_FROM_MS, TRIAL_RANGES, type Cycles } from "./cycles";
import type { Steps } from "./steps";
import type { Summed, Task } from "./tasks";
import { ofAbsence, ofChange, ofGroups, ofMatching, ofPoints, visits } from "./windows";

/** mulberry32. */
function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const SEED = Number(process.env["SEED"] ?? Math.floor(Math.random() * 1e9));
const BEGIN = STEPS_FROM_MS + 20_000 * 86_400_000;

/** Points often exactly at the ends of steps, and now and then a long pause. */
function pointsOf(random: () => number): Row[] {
  const rows: Row[] = [];
  let at = BEGIN - 3_600_000;
  while (at < BEGIN + 2 * 3_600_000) {
    rows.push({ at, value: Math.floor(random() * 9) });
    at += random() < 0.05 ? 900_000 : [1_000, 20_000, 30_000, 60_000, 61_500][Math.floor(random() * 5)]!;
  }
  return rows;
}

const floorTo = (at: number, stepMs: number) => STEPS_FROM_MS + Math.floor((at - STEPS_FROM_MS) / stepMs) * stepMs;

function valueOf(values: number[], aggregation: Aggregation): Value {
  const sum = values.reduce((total, value) => total + value, 0);
  const [first, last, min, max] = [values[0]!, values.at(-1)!, Math.min(...values), Math.max(...values)];
  const all = { count: values.length, sum, avg: sum / values.length, min, max, first, last };
  return { ...all, range: max - min, delta: last - first }[aggregation as Summed];
}

function grouped(rows: Row[], stepMs: number): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  for (const { at, value } of rows) {
    const begin = floorTo(at, stepMs);
    groups.set(begin, [...(groups.get(begin) ?? []), Number(value)]);
  }
  return groups;
}

function stepsOf(rows: Row[], stepMs: number): Steps {
  const groups = grouped(rows, stepMs);
  const names = ["count", "sum", "min", "max", "first", "last"] as const;
  const column = (name: Aggregation) => [...groups.values()].map((values) => valueOf(values, name));
  return { starts: [...groups.keys()], values: Object.fromEntries(names.map((name) => [name, column(name)])) };
}

interface Case {
  kind: Kind;
  parameters: Record<string, Parameter>;
  groups?: Task["groups"];
}

const CASES: Case[] = [
  ...["any", "all", "last"].flatMap((match): Case[] => [
    { kind: "threshold", parameters: { operator: "gte", value: 6, match } },
    { kind: "threshold", parameters: { operator: "neq", value: 4, match } },
    { kind: "range", parameters: { low: 1, high: 7, match } },
    { kind: "range", parameters: { low: 1, high: 7, inside: true, match } },
  ]),
  { kind: "threshold", parameters: { operator: "lt", value: 5, match: "count", minCount: 4 } },
  { kind: "range", parameters: { low: 2, high: 6, match: "count", minCount: 3 } },
  ...["first", "min", "max"].map(
    (from): Case => ({ kind: "change", parameters: { direction: "any", by: 60, percent: true, from } }),
  ),
  { kind: "change", parameters: { direction: "increase", by: 3 } },
  { kind: "absence", parameters: {} },
  { kind: "absence", parameters: { maxGapSeconds: 60 } },
  { kind: "absence", parameters: { maxGapSeconds: 180 } },
  { kind: "zscore", parameters: { limit: 1.5, minPoints: 3 } },
  ...(["avg", "sum", "min", "max", "count", "first", "last", "range", "delta"] as const).map(
    (aggregation): Case => ({
      kind: "threshold",
      parameters: { operator: "gt", value: 4 },
      groups: { aggregation, stepSeconds: 300 },
    }),
  ),
  {
    kind: "change",
    parameters: { direction: "any", by: 2 },
    groups: { aggregation: "avg", stepSeconds: 300 },
  },
  { kind: "zscore", parameters: { limit: 1, minPoints: 2 }, groups: { aggregation: "last", stepSeconds: 120 } },
];

function taskOf({ kind, parameters, groups = null }: Case, intervalSeconds: number, windowSeconds: number): Task {
  const gap = parameters["maxGapSeconds"];
  const lengths = [intervalSeconds, windowSeconds, ...(groups === null ? [] : [groups.stepSeconds])];
  const readSeconds = commonStep(typeof gap === "number" ? [...lengths, gap] : lengths);
  return { bucketId: "b", sourceId: "s", field: "x", kind, parameters, windowSeconds, groups, readSeconds };
}

function fromSteps(task: Task, rows: Row[], cycles: Cycles): Outcome[] {
  const stepMs = task.readSeconds! * 1000;
  const steps = stepsOf(rows, stepMs);
  if (task.groups !== null) return ofGroups(task, steps, cycles);
  switch (task.kind) {
    case "threshold":
    case "range": {
      if (task.parameters["match"] === "last") return ofMatching(task, steps, null, cycles);
      const wanted = task.kind === "threshold" ? task.parameters : { ...task.parameters, inside: true };
      const passing = rows.filter(({ value }) => passes(task.kind as "range", wanted, value));
      return ofMatching(task, steps, stepsOf(passing, stepMs), cycles);
    }
    case "change":
      return ofChange(task, steps, cycles);
    case "absence":
      return ofAbsence(task, steps, cycles);
    default: {
      const points = { times: rows.map(({ at }) => at), numbers: rows.map(({ value }) => Number(value)), from: 0 };
      return ofPoints(task, points, cycles);
    }
  }
}

/** The window itself, without the nanosecond: no point of this test lies there. */
function rowByRow({ kind, parameters, windowSeconds, groups }: Task, rows: Row[], cycles: Cycles): Outcome[] {
  return Array.from({ length: cycles.count }, (_, cycle) => {
    const end = cycles.first + cycle * cycles.intervalMs;
    const start = end - windowSeconds * 1000;
    const seen = rows.filter(({ at }) => at >= start && at < end);
    // A millisecond is the resolution of these points.
    const window = { start: start - 1, end: end - 1 };
    if (groups === null) return evaluate(kind, parameters, seen, window, 0);
    const stepMs = groups.stepSeconds * 1000;
    const each = [...grouped(seen, stepMs)].map(([at, values]) => ({ at, value: valueOf(values, groups.aggregation) }));
    return evaluate(kind, parameters, each, window, stepMs);
  });
}

describe("windows of steps", () => {
  for (const [number, each] of CASES.entries()) {
    test(`case ${number} as row by row: ${each.kind} ${JSON.stringify(each)}`, () => {
      const random = randoms(SEED + number);
      for (const [interval, window] of [[60, 180], [120, 300], [90, 600], [300, 60], [60, 1_800]] as const) {
        const rows = pointsOf(random);
        const count = Math.floor(3_600 / interval);
        const cycles = { range: TRIAL_RANGES[4], intervalMs: interval * 1000, first: BEGIN, last: 0, count };
        const task = taskOf(each, interval, window);
        expect(fromSteps(task, rows, cycles), `SEED=${SEED} ${interval} ${window}`).toEqual(rowByRow(task, rows, cycles));
      }
    });
  }

  test("visits are the entries of all windows", () => {
    const cycles = { range: TRIAL_RANGES[4], intervalMs: 60_000, first: BEGIN, last: 0, count: 3 };
    const starts = [BEGIN - 120_000, BEGIN - 60_000, BEGIN, BEGIN + 60_000];
    expect(visits(starts, cycles, 120)).toBe(6);
  });
});
