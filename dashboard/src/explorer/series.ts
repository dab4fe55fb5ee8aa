/** Lines out of rows: one per field and source, gaps where data is missing, all on one time axis. Pure. */
import type { FieldType, Source } from "../api/sources";
import type { Row, View } from "./fetch";
import { groupGaps, pointGaps } from "./gaps";
import { UNIT_SECONDS } from "./plan";
import { fieldId, type FieldRef } from "./state";

export interface Line {
  id: string;
  ref: FieldRef;
  /** `Pump 1 · vibration`. */
  label: string;
  unit: string;
  type: FieldType;
  /** Place in the palette: a line keeps its colour while others come and go. */
  index: number;
  times: number[];
  /** Null breaks the line. */
  values: (number | null)[];
  lows: (number | null)[] | null;
  highs: (number | null)[] | null;
  /** The newest point itself; null for counts, and where there is none. */
  newest: { at: number; value: number } | null;
}

export function linesOf(view: View, fields: FieldRef[], sources: ReadonlyMap<string, Source>): Line[] {
  const bySource = new Map<string, Row[]>();
  for (const row of view.rows) {
    const rows = bySource.get(row.dataSourceId);
    if (rows === undefined) bySource.set(row.dataSourceId, [row]);
    else rows.push(row);
  }
  return fields.flatMap((ref, index) => {
    const source = sources.get(ref.sourceId);
    const definition = source?.schema[ref.field];
    if (source === undefined || definition === undefined) return [];
    const counted = view.plan.kind === "grouped" && view.plan.aggregation === "count";
    // Groups hold numbers; a text is no line at all.
    const drawn = definition.type === "number" || (definition.type === "boolean" && view.groupBy === null);
    if (!drawn && !counted) return [];
    const line: Line = {
      id: fieldId(ref),
      ref,
      label: `${source.name} · ${ref.field}`,
      unit: counted ? "points" : definition.type === "boolean" ? "" : (definition.unit ?? ""),
      type: counted ? "number" : definition.type,
      index,
      times: [],
      values: [],
      lows: null,
      highs: null,
      newest: counted ? null : newestOf(view, ref),
    };
    fill(line, bySource.get(ref.sourceId) ?? [], view);
    return [line];
  });
}

function newestOf(view: View, ref: FieldRef): Line["newest"] {
  const newest = view.newest.get(fieldId(ref));
  if (newest === undefined || newest.value === null || typeof newest.value === "string") return null;
  return { at: newest.at, value: Number(newest.value) };
}

function fill(line: Line, rows: Row[], view: View): void {
  const field = line.ref.field;
  const present = rows.filter((row) => row.values[field] !== undefined && row.values[field] !== null);
  const band = view.groupBy !== null && present.some((row) => row.stats?.[field] !== undefined);
  const times = present.map((row) => row.at);
  const isGap = view.groupBy === null ? pointGaps(times) : groupGaps(times, UNIT_SECONDS[view.groupBy] * 1000);
  line.lows = band ? [] : null;
  line.highs = band ? [] : null;
  const push = (at: number, value: number | null, low: number | null, high: number | null) => {
    line.times.push(at);
    line.values.push(value);
    line.lows?.push(low);
    line.highs?.push(high);
  };
  for (const [index, row] of present.entries()) {
    const before = present[index - 1];
    if (before !== undefined && isGap(index)) push(before.at + (row.at - before.at) / 2, null, null, null);
    const value = row.values[field];
    const number = typeof value === "boolean" ? Number(value) : typeof value === "number" ? value : null;
    const stats = row.stats?.[field];
    push(row.at, number, stats?.min ?? number, stats?.max ?? number);
  }
}

export type Column = (number | null | undefined)[];

/** A line on the time axis that it shares with others; `undefined` where it has no point of a time. */
export interface AlignedLine {
  line: Line;
  values: Column;
  lows: Column | null;
  highs: Column | null;
  /** Places that get a dot, as no stroke, or none of any width, may show them: ends of a run, and values alone. */
  dots: number[];
}

/** One ascending time axis for all lines. */
export function aligned(lines: Line[]): { times: number[]; columns: AlignedLine[] } {
  const times = mergedTimes(lines.map((line) => line.times));
  const place = new Map(times.map((at, index) => [at, index]));
  const spread = (line: Line, values: (number | null)[]): Column => {
    if (line.times.length === times.length) return values;
    const column: Column = new Array<undefined>(times.length).fill(undefined);
    for (const [index, at] of line.times.entries()) column[place.get(at)!] = values[index];
    return column;
  };
  const columns = lines.map((line) => ({
    line,
    values: spread(line, line.values),
    lows: line.lows === null ? null : spread(line, line.lows),
    highs: line.highs === null ? null : spread(line, line.highs),
    dots: runEnds(line.values).map((index) => place.get(line.times[index]!)!),
  }));
  return { times, columns };
}

/** Indices of values beside which something is missing. */
function runEnds(values: (number | null)[]): number[] {
  const missing = (index: number) => (values[index] ?? null) === null;
  return [...values.keys()].filter((index) => !missing(index) && (missing(index - 1) || missing(index + 1)));
}

function mergedTimes(all: number[][]): number[] {
  const [only] = all;
  const strictly = (times: number[]) => times.every((at, index) => index === 0 || at > times[index - 1]!);
  if (all.length === 1 && only !== undefined && strictly(only)) return only;
  return [...new Set(all.flat())].sort((a, b) => a - b);
}

/** Points of a line, gaps not counted. */
export const pointsOf = (line: Line): number =>
  line.values.reduce<number>((sum, value) => sum + (value === null ? 0 : 1), 0);
