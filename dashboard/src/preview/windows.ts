/** The outcomes of an input at all cycles, from what was read of it once. Pure. */
import type { Outcome } from "../api/rules";
import type { Value } from "../api/query";
import { absence, type Presence } from "../conditions/absence";
import { change, type Course } from "../conditions/change";
import type { Part, Row, Window } from "../conditions/entry";
import { evaluate } from "../conditions/evaluate";
import { matching, passes, type Tally } from "../conditions/matching";
import { zscore } from "../conditions/zscore";
import { STEPS_FROM_MS, type Cycles } from "./cycles";
import type { Points } from "./points";
import { numbers, type Steps } from "./steps";
import type { Summed, Task } from "./tasks";

/** A step's last instant lies before its end by less than a clock tells. */
const BEFORE_END_MS = 0.001;

/** `entries` begin at `starts`, ascending. */
function overWindows<E>(
  { starts, entries }: { starts: readonly number[]; entries: readonly E[] },
  cycles: Cycles,
  windowSeconds: number,
  outcome: (part: Part<E>, window: Window) => Outcome,
): Outcome[] {
  const outcomes: Outcome[] = [];
  let [first, behind] = [0, 0];
  for (let cycle = 0; cycle < cycles.count; cycle++) {
    const end = cycles.first + cycle * cycles.intervalMs;
    const start = end - windowSeconds * 1000;
    while (first < starts.length && starts[first]! < start) first++;
    behind = Math.max(behind, first);
    while (behind < starts.length && starts[behind]! < end) behind++;
    outcomes.push(outcome({ entries, first, behind }, { start, end }));
  }
  return outcomes;
}

/** Points of all windows together: what evaluating them costs. */
export function visits(starts: readonly number[], cycles: Cycles, windowSeconds: number): number {
  let sum = 0;
  overWindows({ starts, entries: starts }, cycles, windowSeconds, ({ first, behind }) => {
    sum += behind - first;
    return "inconclusive";
  });
  return sum;
}

export function ofPoints({ parameters, windowSeconds }: Task, points: Points, cycles: Cycles): Outcome[] {
  const read = { starts: points.times, entries: points.numbers };
  return overWindows(read, cycles, windowSeconds, (part) => zscore(parameters, part));
}

/** `passing`: the steps of the points that pass, with their `count`; null where the newest point alone decides. */
export function ofMatching(task: Task, all: Steps, passing: Steps | null, cycles: Cycles): Outcome[] {
  const { kind, parameters, windowSeconds } = task;
  if (kind !== "threshold" && kind !== "range") throw new Error(`${kind} compares no values`);
  const counts = new Map(passing?.starts.map((at, index) => [at, numbers(passing, "count")[index]!]));
  const tested = numbers(all, "count");
  // Of a range, those inside are asked for.
  const inside = kind === "threshold" || parameters["inside"] === true;
  const entries = all.starts.map((at, index): Tally => {
    const found = counts.get(at) ?? 0;
    const lastPasses = passes(kind, parameters, all.values.last?.[index] ?? null) === true;
    return { tested: tested[index]!, passed: inside ? found : tested[index]! - found, lastPasses };
  });
  return overWindows({ starts: all.starts, entries }, cycles, windowSeconds, (part) => matching(parameters, part));
}

export function ofChange({ parameters, windowSeconds }: Task, steps: Steps, cycles: Cycles): Outcome[] {
  const [count, first, last] = [numbers(steps, "count"), numbers(steps, "first"), numbers(steps, "last")];
  const [least, greatest] = [numbers(steps, "min"), numbers(steps, "max")];
  const entries = steps.starts.map((_, index): Course => ({
    count: count[index]!,
    first: first[index]!,
    last: last[index]!,
    least: least[index]!,
    greatest: greatest[index]!,
  }));
  return overWindows({ starts: steps.starts, entries }, cycles, windowSeconds, (part) => change(parameters, part));
}

export function ofAbsence({ parameters, windowSeconds, readSeconds }: Task, steps: Steps, cycles: Cycles): Outcome[] {
  const lengthMs = (readSeconds ?? 0) * 1000 - BEFORE_END_MS;
  const entries = steps.starts.map((from): Presence => ({ from, to: from + lengthMs }));
  const read = { starts: steps.starts, entries };
  return overWindows(read, cycles, windowSeconds, (part, window) => absence(parameters, part, window));
}

/** Groups of an input: at the ends of a window they are parts of their steps. */
export function ofGroups(task: Task, steps: Steps, cycles: Cycles): Outcome[] {
  const { kind, parameters, windowSeconds, groups } = task;
  if (groups === null) throw new Error("the input has no groups");
  const stepMs = groups.stepSeconds * 1000;
  const entries = sumsOf(steps);
  return overWindows({ starts: steps.starts, entries }, cycles, windowSeconds, (part, window) =>
    evaluate(kind, parameters, rowsOf(steps.starts, part, stepMs, groups.aggregation), window, stepMs),
  );
}

/** What a step, or several, come to. */
interface Sum {
  count: number;
  sum: number;
  min: number;
  max: number;
  first: Value;
  last: Value;
}

/** Columns that were not asked for are not used either. */
function sumsOf(steps: Steps): Sum[] {
  const { count, sum, min, max } = {
    ...{ count: numbers(steps, "count"), sum: numbers(steps, "sum") },
    ...{ min: numbers(steps, "min"), max: numbers(steps, "max") },
  };
  return steps.starts.map((_, index) => ({
    count: count[index] ?? 0,
    sum: sum[index] ?? 0,
    min: min[index] ?? 0,
    max: max[index] ?? 0,
    first: steps.values.first?.[index] ?? null,
    last: steps.values.last?.[index] ?? null,
  }));
}

function rowsOf(starts: readonly number[], part: Part<Sum>, stepMs: number, aggregation: Summed): Row[] {
  const rows: Row[] = [];
  let at = -Infinity;
  let group: Sum | null = null;
  for (let index = part.first; index < part.behind; index++) {
    const one = part.entries[index]!;
    const begin = STEPS_FROM_MS + Math.floor((starts[index]! - STEPS_FROM_MS) / stepMs) * stepMs;
    if (group === null || begin !== at) {
      if (group !== null) rows.push({ at, value: valueOf(group, aggregation) });
      [at, group] = [begin, { ...one }];
      continue;
    }
    group.count += one.count;
    group.sum += one.sum;
    group.min = Math.min(group.min, one.min);
    group.max = Math.max(group.max, one.max);
    group.last = one.last;
  }
  if (group !== null) rows.push({ at, value: valueOf(group, aggregation) });
  return rows;
}

function valueOf(group: Sum, aggregation: Summed): Value {
  switch (aggregation) {
    case "avg":
      return group.sum / group.count;
    case "range":
      return group.max - group.min;
    case "delta":
      return Number(group.last) - Number(group.first);
    default:
      return group[aggregation];
  }
}
