/** Lines out of rows: one per field and source, gaps where data is missing, all on one time axis. Pure. */
import type { FieldType, Source } from "../api/sources";
import type { Row, View } from "./fetch";
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
}

/** A pause of this many intervals around it is a gap, not a slope. */
const GAP_INTERVALS = 5;
/** Intervals before and after a pause that say what is usual there: a source may change its pace. */
const GAP_NEIGHBOURS = 4;

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
    };
    fill(line, bySource.get(ref.sourceId) ?? [], view);
    return [line];
  });
}

function fill(line: Line, rows: Row[], view: View): void {
  const field = line.ref.field;
  const present = rows.filter((row) => row.values[field] !== undefined && row.values[field] !== null);
  const band = view.groupBy !== null && present.some((row) => row.stats?.[field] !== undefined);
  const isGap = gapsOf(present, view);
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

/** Whether something is missing right before the row of an index. */
function gapsOf(rows: Row[], view: View): (index: number) => boolean {
  const step = (index: number) => rows[index]!.at - rows[index - 1]!.at;
  // Months differ by three days; half a unit more than one is a missing group for all of them.
  if (view.groupBy !== null) {
    const unitMs = UNIT_SECONDS[view.groupBy] * 1000;
    return (index) => step(index) > unitMs * 1.5;
  }
  return (index) => {
    let usual = 0;
    for (
      let near = Math.max(1, index - GAP_NEIGHBOURS);
      near <= Math.min(rows.length - 1, index + GAP_NEIGHBOURS);
      near++
    ) {
      if (near !== index) usual = Math.max(usual, step(near));
    }
    return usual > 0 && step(index) > usual * GAP_INTERVALS;
  };
}

export type Column = (number | null | undefined)[];

/** One ascending time axis for all lines; `undefined` where a line has no point of that time. */
export function aligned(lines: Line[]): {
  times: number[];
  columns: { line: Line; values: Column; lows: Column | null; highs: Column | null }[];
} {
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
  }));
  return { times, columns };
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
