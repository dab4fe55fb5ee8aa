/** `threshold` and `range`: rows are tested one by one, and `match` says how many must pass. */
import type { Value } from "../api/query";
import type { Outcome } from "../api/rules";
import type { Parameters, Part } from "./entry";

export interface Tally {
  /** Rows with a value of the type that is compared. */
  tested: number;
  passed: number;
  /** Whether the newest of them passes. */
  lastPasses: boolean;
}

/** Whether a value passes; null of one of another type, which is not tested. */
export function passes(kind: "threshold" | "range", parameters: Parameters, value: Value): boolean | null {
  if (kind === "threshold") return compared(value, String(parameters["operator"]), parameters["value"] ?? null);
  if (typeof value !== "number") return null;
  const inside = value >= Number(parameters["low"]) && value <= Number(parameters["high"]);
  return inside === (parameters["inside"] === true);
}

function compared(value: Value, operator: string, limit: Value): boolean | null {
  if (value === null || limit === null || typeof value !== typeof limit) return null;
  switch (operator) {
    case "eq":
      return value === limit;
    case "neq":
      return value !== limit;
    case "gt":
      return value > limit;
    case "gte":
      return value >= limit;
    case "lt":
      return value < limit;
    case "lte":
      return value <= limit;
    default:
      return null;
  }
}

export function tallyOf(kind: "threshold" | "range", parameters: Parameters, value: Value): Tally | null {
  const passed = passes(kind, parameters, value);
  return passed === null ? null : { tested: 1, passed: passed ? 1 : 0, lastPasses: passed };
}

export function matching(parameters: Parameters, { entries, first, behind }: Part<Tally>): Outcome {
  let [tested, passed, last] = [0, 0, false];
  for (let index = first; index < behind; index++) {
    const tally = entries[index]!;
    if (tally.tested === 0) continue;
    tested += tally.tested;
    passed += tally.passed;
    last = tally.lastPasses;
  }
  if (tested === 0) return "inconclusive";
  const needed = { all: tested, count: Number(parameters["minCount"]) }[String(parameters["match"])] ?? 1;
  const met = parameters["match"] === "last" ? last : passed >= needed;
  return met ? "met" : "not_met";
}
