/** What the chart of a rule shows: the rows of its first input, and where their values make it fire. Pure. */
import { AGGREGATIONS, GROUPINGS, type Aggregation, type GroupBy } from "../api/query";
import { formatValue, numberOf } from "../app/format";
import { linesOf, type Zone } from "../chart/zones";
import { UNSPLIT, isComplete } from "../explorer/dimensions";
import { DEFAULT_RANGE, type Range } from "../explorer/range";
import type { Line } from "../explorer/series";
import type { ExplorerState } from "../explorer/state";
import { stepLength } from "../pages/rule-groups";
import { typeOf, type KnownSource, type RuleDraft } from "../pages/rule-draft";

/** Null while no field is chosen. */
export function stateOf(draft: RuleDraft, sources: KnownSource[], range: Range = DEFAULT_RANGE): ExplorerState | null {
  const input = draft.inputs[0];
  if (input === undefined || typeOf(draft, input, sources) === null) return null;
  const sourceId = input.sourceId === "" ? draft.sourceId : input.sourceId;
  return {
    fields: [{ bucketId: draft.bucketId, sourceId, field: input.field }],
    range,
    ...(drawnGroups(input.grouping) ?? { aggregation: "auto", groupBy: "auto" }),
    compare: null,
    live: false,
    ...(input.conditions === undefined ? {} : { dimensions: { ...UNSPLIT, conditions: input.conditions.filter(isComplete) } }),
  };
}

/** Groups that a chart has; null for points, and for groups that it draws as points. */
export function drawnGroups(grouping: string): { aggregation: Aggregation; groupBy: GroupBy } | null {
  const [aggregation, groupBy] = grouping.split(" ");
  const name = AGGREGATIONS.find((one) => one === aggregation);
  // `60m` is `hour`; a month is no number of days.
  const length = stepLength(groupBy ?? "");
  const step = GROUPINGS.find((one) => one === groupBy || (length !== null && stepLength(one) === length));
  return name === undefined || step === undefined ? null : { aggregation: name, groupBy: step };
}

/** None of a kind that compares with no constant, and while a number is missing. */
export function zonesOf(draft: RuleDraft, sources: KnownSource[]): Zone[] {
  const { kind, condition, inputs } = draft;
  const type = inputs[0] === undefined ? null : typeOf(draft, inputs[0], sources);
  if (kind === "threshold") {
    const at = type === "boolean" ? switchOf(condition.value) : type === "number" ? numberOf(condition.value) : null;
    if (at === null) return [];
    if (condition.operator === "gt" || condition.operator === "gte") return [{ low: at, high: Infinity }];
    if (condition.operator === "lt" || condition.operator === "lte") return [{ low: -Infinity, high: at }];
    return [{ low: at, high: at }];
  }
  if (kind !== "range") return [];
  const [low, high] = [numberOf(condition.low), numberOf(condition.high)];
  if (low !== null && high !== null && low > high) return [];
  if (condition.inside) return low === null || high === null ? [] : [{ low, high }];
  return [
    ...(low === null ? [] : [{ low: -Infinity, high: low }]),
    ...(high === null ? [] : [{ low: high, high: Infinity }]),
  ];
}

const switchOf = (text: string): number | null => (text === "true" ? 1 : text === "false" ? 0 : null);

/** The least and the greatest that is drawn; null of an empty line. */
export function extentOf(line: Line): { low: number; high: number } | null {
  let [low, high] = [Infinity, -Infinity];
  for (const value of line.lows ?? line.values) if (value !== null && value < low) low = value;
  for (const value of line.highs ?? line.values) if (value !== null && value > high) high = value;
  return low > high ? null : { low, high };
}

/** The chart in words, for who cannot see it. */
export function spokenChart(line: Line, zones: readonly Zone[], firings: number, noun: string): string {
  const extent = extentOf(line);
  if (extent === null) return "";
  const unit = line.unit === "" ? "" : ` ${line.unit}`;
  const value = (number: number) => `${formatValue(number)}${unit}`;
  const parts = [`${line.label}: from ${value(extent.low)} to ${value(extent.high)}`];
  if (line.newest !== null) parts.push(`newest ${value(line.newest.value)}`);
  const ends = linesOf(zones);
  if (ends.length > 0) parts.push(`${ends.length === 1 ? "line" : "lines"} at ${ends.map(value).join(" and ")}`);
  parts.push(firings === 0 ? `no ${noun} marked` : `${firings} ${noun}${firings === 1 ? "" : "s"} marked`);
  return `${parts.join("; ")}.`;
}
