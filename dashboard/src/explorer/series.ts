/** Lines out of tables: one per field and source, gaps where data is missing, all on one time axis. Pure. */
import { STEP_SECONDS, type Aggregation, type Offset, type Step } from "../api/query";
import type { FieldType, FieldDefinition, Source } from "../api/sources";
import type { Zone } from "../app/preferences";
import type { Part, View } from "./fetch";
import { labelsInWords } from "./dimension-words";
import { groupGaps, pointGaps } from "./gaps";
import { placesOf } from "./places";
import { isCount, isMerged, isSplit } from "./plan";
import type { Span } from "./range";
import { fieldId, sameField, type FieldRef } from "./state";
import { stepEnd } from "./steps";
import { MERGED, byGroup, tableId, type SourceTable } from "./table";

export interface Line {
  id: string;
  ref: FieldRef;
  /** `Pump 1 · vibration`. */
  label: string;
  /** `host=a`, of a group by dimensions. */
  group?: string;
  unit: string;
  type: FieldType;
  /** Place in the palette: a line keeps its colour while others come and go. */
  index: number;
  /** What its values are groups of; null for points. Of a switch, the share of a step's time that it was true. */
  step: Step | null;
  times: number[];
  /** Where the steps begin; null for points. */
  starts: number[] | null;
  /** Null breaks the line. */
  values: (number | null)[];
  lows: (number | null)[] | null;
  highs: (number | null)[] | null;
  /** What stood there before, drawn beside the line itself. */
  isBefore: boolean;
  /** The newest point itself; null for sums and counts, and where there is none. */
  newest: { at: number; value: number } | null;
}

/** `places`: those of groups in the palette, in the picture before; empty for the first one. */
export function linesOf(
  view: View,
  fields: FieldRef[],
  sources: ReadonlyMap<string, Source>,
  places: ReadonlyMap<string, number> = NO_PLACES,
): Line[] {
  const { aggregation, kind } = view.plan;
  const counted = kind === "grouped" && isCount(aggregation);
  // A point is no sum: beside sums of hours it would stand as the least by far.
  const derived = kind === "grouped" && DERIVED.includes(aggregation);
  const [merged, split] = [isMerged(view.plan), isSplit(view.plan)];
  const all = fields.flatMap((ref, index) => {
    const source = sources.get(ref.sourceId);
    const definition = source?.schema[ref.field];
    const part = view.parts[view.plan.buckets.findIndex(({ refs }) => refs.some((one) => sameField(one, ref)))];
    if (source === undefined || definition === undefined || part === undefined) return [];
    // A text is no line at all.
    if (definition.type === "string" && !counted) return [];
    // Of groups, what is no number is left out.
    if (split && definition.type !== "number" && !counted) return [];
    const together = merged ? view.plan.buckets.flatMap(({ refs }) => refs.filter((one) => isBeside(one, ref))) : [];
    // Of sources together, the first one has the line.
    if (merged && (!sameField(together[0]!, ref) || (definition.type !== "number" && !counted))) return [];
    const newest = counted || merged || split ? null : newestOf(view, ref);
    const line: Line = {
      id: fieldId(ref),
      ref,
      label: `${together.length > 1 ? `${together.length} sources` : source.name} · ${ref.field}`,
      unit: counted ? COUNTED[aggregation]! : unitOf(definition, derived ? aggregation : null),
      type: counted ? "number" : definition.type,
      index,
      step: part.groupBy,
      times: [],
      starts: part.groupBy === null ? null : [],
      values: [],
      lows: null,
      highs: null,
      isBefore: false,
      newest: derived && definition.type === "number" ? null : newest,
    };
    const sourceId = merged ? MERGED : ref.sourceId;
    if (split) return linesOfGroups(line, sourceId, part, view, fields.length === 1);
    const table = part.tables.get(sourceId);
    return table === undefined ? [line] : drawn(line, table, part, view, newest?.at ?? null);
  });
  return split ? placed(all, places) : all;
}

const NO_PLACES: ReadonlyMap<string, number> = new Map();

/** A line, and what stood there before. `newest`: when the newest point was. */
function drawn(empty: Line, table: SourceTable, part: Part, view: View, newest: number | null = null): Line[] {
  const line: Line = { ...empty, times: [], starts: empty.starts === null ? null : [], values: [] };
  fill(line, table, part, view, newest);
  const { compare } = view.plan;
  const previous = table.previous.get(line.ref.field);
  if (compare === null || previous === undefined) return [line];
  const before: Line = {
    ...line,
    id: `${line.id} before`,
    label: `${line.label} · ${spanName(compare)} before`,
    ...{ times: [], starts: [], values: [], lows: null, highs: null, isBefore: true, newest: null },
  };
  const none = new Map<string, (number | null)[]>();
  const values = new Map([[line.ref.field, previous]]);
  fill(before, { ...table, values, lows: none, highs: none }, part, view, null);
  return [line, before];
}

/** A line for each group of a source that has values of the field; `only`: its name says nothing that is not plain. */
function linesOfGroups(line: Line, sourceId: string, part: Part, view: View, only: boolean): Line[] {
  const { field } = line.ref;
  const tables = [...part.tables.values()].filter(
    (table) => table.sourceId === sourceId && (table.values.get(field) ?? []).some((value) => value !== null),
  );
  return tables.slice(0, view.plan.dimensions.top).sort(byGroup).flatMap((table) => {
    // Of a source without the dimensions, the line is its own.
    if (table.group.length === 0) return drawn(line, table, part, view);
    const words = labelsInWords(table.group);
    const [id, label] = [`${line.id} ${tableId("", table.group)}`, only ? words : `${line.label} · ${words}`];
    return drawn({ ...line, id, label, group: words }, table, part, view);
  });
}

/** Groups come and go: each keeps its colour while it is there, and what stood there before has that of its line. */
function placed(lines: Line[], before: ReadonlyMap<string, number>): Line[] {
  const own = (line: Line) => (line.isBefore ? line.id.replace(/ before$/, "") : line.id);
  const named = lines.filter(({ isBefore }) => !isBefore).map(({ id, group = "" }) => ({ id, name: group }));
  const places = placesOf(named, before);
  return lines.map((line) => ({ ...line, index: places.get(own(line))! }));
}

/** Where lines stand in the palette, for the next picture. */
export const placesIn = (lines: readonly Line[]): ReadonlyMap<string, number> =>
  new Map(lines.filter(({ isBefore }) => !isBefore).map(({ id, index }) => [id, index]));

/** Of one line, where sources are drawn together. */
const isBeside = (a: FieldRef, b: FieldRef): boolean => a.bucketId === b.bucketId && a.field === b.field;

/** Aggregations whose results are not values of the field. */
const DERIVED: Aggregation[] = ["sum", "range", "stddev", "delta", "increase", "rate"];
const COUNTED: Partial<Record<Aggregation, string>> = { count: "points", distinct: "values" };

function unitOf({ type, unit }: FieldDefinition, derived: Aggregation | null): string {
  if (type === "boolean") return "";
  return derived === "rate" ? `${unit ?? ""}/s` : (unit ?? "");
}

/** `1 d`, `4 w`. */
const spanName = (offset: Offset): string => offset.replace(/(?=[a-z])/, " ");

function newestOf(view: View, ref: FieldRef): Line["newest"] {
  const newest = view.newest.get(fieldId(ref));
  if (newest === undefined || typeof newest.value === "string") return null;
  return { at: newest.at, value: Number(newest.value) };
}

/** `newest`: when the newest point was. */
function fill(line: Line, table: SourceTable, { groupBy }: Part, { span, plan }: View, newest: number | null): void {
  const zone = plan.timezone ?? "utc";
  const column = table.values.get(line.ref.field) ?? [];
  // What is computed of extremes is no extreme of what is computed.
  const computed = plan.refinement.expressions.some(({ name }) => name === line.ref.field);
  const lows = computed ? undefined : table.lows.get(line.ref.field);
  const highs = computed ? undefined : table.highs.get(line.ref.field);
  const present = [...column.keys()].filter((row) => (column[row] ?? null) !== null);
  const times = present.map((row) => table.times[row]!);
  const isGap = groupBy === null ? pointGaps(times) : groupGaps(times, STEP_SECONDS[groupBy] * 1000);
  if (lows !== undefined && highs !== undefined) [line.lows, line.highs] = [[], []];
  const push = (at: number, start: number, value: number | null, low: number | null, high: number | null) => {
    line.times.push(at);
    line.starts?.push(start);
    line.values.push(value);
    line.lows?.push(low);
    line.highs?.push(high);
  };
  for (const [index, row] of present.entries()) {
    const start = times[index]!;
    const at = groupBy === null ? start : placeOf(start, groupBy, span, zone, newest);
    if (index > 0 && isGap(index)) {
      const before = line.times.at(-1)!;
      push(before + (at - before) / 2, start, null, null, null);
    }
    const value = column[row];
    const number = typeof value === "boolean" ? Number(value) : typeof value === "number" ? value : null;
    push(at, start, number, lows?.[row] ?? number, highs?.[row] ?? number);
  }
}

/**
 * Where a group's value is drawn: in the middle of its part of the range. A group that goes on reaches to the newest
 * point, so that the end of the line is where the data end.
 */
function placeOf(start: number, step: Step, span: Span, zone: Zone, newest: number | null): number {
  const end = stepEnd(start, step, zone);
  const [from, to] = [Math.max(start, span.from), Math.min(end, span.to)];
  // A point at the end of a group is the first of the next one.
  if (newest !== null && newest >= from && newest <= span.to && newest < end) return newest;
  return from + (to - from) / 2;
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
