/** Groups as an input may have them: what a step comes to, and how long it is. Pure. */
import type { FieldType } from "../api/sources";

const OF_NUMBERS = [
  ...["avg", "min", "max", "median", "p95", "p99", "sum", "range", "stddev"],
  ...["delta", "increase", "rate", "timeAvg"],
];
const OF_ANY = ["count", "distinct", "first", "last"];
const OF_SWITCHES = ["trueShare"];
/** These are numbers of another kind than what they are made of. */
const COUNTS = ["count", "distinct", "trueShare"];

/** What a step of values of a type can come to. */
export function aggregationsOf(type: FieldType | undefined): string[] {
  if (type === undefined || type === "number") return [...OF_NUMBERS, ...OF_ANY];
  return type === "boolean" ? [...OF_ANY, ...OF_SWITCHES] : OF_ANY;
}

/** Also of aggregations that are not offered, such as `p90`. */
export const covers = (aggregation: string, type: FieldType | undefined): boolean =>
  type === undefined ||
  aggregationsOf(type).includes(aggregation) ||
  (type === "number" && /^p\d/.test(aggregation) && !OF_SWITCHES.includes(aggregation));

/** The type of the rows of an input of a field of `type`. */
export const typeOfRows = (grouping: string, type: FieldType): FieldType =>
  COUNTS.includes(aggregationOf(grouping)) ? "number" : type;

/** The unit of the rows of an input of a field with this unit. */
export function unitOfRows(grouping: string, unit: string | undefined): string | undefined {
  const aggregation = aggregationOf(grouping);
  if (COUNTS.includes(aggregation)) return undefined;
  return aggregation === "rate" && unit !== undefined ? `${unit}/s` : unit;
}

export const aggregationOf = (grouping: string): string => grouping.split(" ")[0]!;
/** Empty of points, and while none is typed. */
export const stepOf = (grouping: string): string => grouping.split(" ")[1] ?? "";

/** What is suggested; the server knows every length from a second to 52 weeks. */
export const STEPS = [
  ...["minute", "5m", "15m", "30m", "hour", "3h", "6h", "12h"],
  ...["day", "week", "month", "quarter", "year", "all"],
];

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };
const NAMED: Record<string, number> = { minute: 60, hour: 3_600, day: 86_400, week: 604_800 };
/** Of months and years, the usual ones; of the whole window, one. */
const USUAL: Record<string, number> = { month: 30 * 86_400, quarter: 91 * 86_400, year: 365 * 86_400, all: Infinity };
const STEP_SECONDS_MAX = 52 * 604_800;

/** How long a step is; null of one whose length changes, or that is none. */
export function stepLength(step: string): number | null {
  if (Object.hasOwn(NAMED, step)) return NAMED[step]!;
  const [, count, unit] = /^([1-9]\d{0,8})([smhdw])$/.exec(step) ?? [];
  return unit === undefined ? null : Number(count) * UNIT_SECONDS[unit]!;
}

/** About how long a step is; `NaN` of one that is none. */
export const usualLength = (step: string): number =>
  stepLength(step) ?? (Object.hasOwn(USUAL, step) ? USUAL[step]! : NaN);

/** What is wrong with a step; null when nothing is. */
export function stepFault(step: string): string | null {
  if (step === "") return "write a step such as 15m, hour or day";
  if (Object.hasOwn(USUAL, step)) return null;
  const length = stepLength(step);
  if (length === null) return `must be a step such as 15m, hour or day, not ${step}`;
  return length > STEP_SECONDS_MAX ? "must be at most 52 weeks" : null;
}

/** One row in words. */
export function rowName(grouping: string): string {
  if (grouping === "") return "point";
  const step = stepOf(grouping);
  return Object.hasOwn(NAMED, step) || (Object.hasOwn(USUAL, step) && step !== "all") ? step : "group";
}
