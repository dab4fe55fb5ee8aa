/** What a panel's query answers, as lines that the chart draws. Pure. */
import type { PanelAnswer } from "../api/boards";
import { STEP_SECONDS, type Step, type Value } from "../api/query";
import { labelsInWords } from "../explorer/dimension-words";
import { groupGaps, pointGaps } from "../explorer/gaps";
import { placesOf } from "../explorer/places";
import type { Line } from "../explorer/series";
import { MERGED, byGroup, tableId, type Group } from "../explorer/table";

/** A value of a field of a source, or of all sources, over time. */
export interface Series {
  id: string;
  sourceId: string | null;
  /** Of groups by dimensions, their values; empty otherwise. */
  group: Group;
  field: string;
  /** Of several, the one that this is. */
  aggregation: string | null;
  times: number[];
  values: Value[];
  lows: (number | null)[] | null;
  highs: (number | null)[] | null;
}

/** Of an average, what it hides. */
const [MIN, MAX] = ["min", "max"];

interface Flat {
  timestamps: string[];
  sourceIds: string[] | null;
  groups: Group[] | null;
  /** By field, then by aggregation; the empty name where there is one alone. */
  values: Map<string, Map<string, Value[]>>;
  stats: Map<string, { min: (number | null)[]; max: (number | null)[] }>;
}

/** All series of an answer, each in order of time. */
export function seriesOf(answer: PanelAnswer): Series[] {
  const flat = answer.columns === undefined ? flatOfRows(answer.data ?? []) : flatOfColumns(answer.columns);
  const rows = new Map<string, { sourceId: string | null; group: Group; own: number[] }>();
  for (const row of flat.timestamps.keys()) {
    const [sourceId, group] = [flat.sourceIds?.[row] ?? null, flat.groups?.[row] ?? []];
    const id = tableId(sourceId ?? MERGED, group);
    const known = rows.get(id);
    if (known === undefined) rows.set(id, { sourceId, group, own: [row] });
    else known.own.push(row);
  }
  const times = flat.timestamps.map((text) => Date.parse(text));
  const all: Series[] = [];
  // Sources stay in the order of the answer.
  for (const [id, { sourceId, group, own }] of [...rows].sort(([, a], [, b]) => byGroup(a, b))) {
    own.sort((a, b) => times[a]! - times[b]!);
    for (const [field, byName] of flat.values) {
      const least = byName.get(MIN);
      const banded = byName.has("avg") && least !== undefined && byName.has(MAX);
      for (const [name, column] of byName) {
        if (banded && (name === MIN || name === MAX)) continue;
        const present = own.filter((row) => (column[row] ?? null) !== null);
        if (present.length === 0) continue;
        const stats = flat.stats.get(field);
        const band = name === "avg" && banded ? { min: byName.get(MIN)!, max: byName.get(MAX)! } : stats;
        const pick = <T>(values: T[]): T[] => present.map((row) => values[row]!);
        all.push({
          id: `${id} ${field} ${name}`,
          sourceId,
          group,
          field,
          aggregation: name === "" ? null : name,
          times: pick(times),
          values: pick(column),
          lows: band === undefined ? null : (pick(band.min) as (number | null)[]),
          highs: band === undefined ? null : (pick(band.max) as (number | null)[]),
        });
      }
    }
  }
  return all;
}

function flatOfColumns(columns: NonNullable<PanelAnswer["columns"]>): Flat {
  const values = Object.entries(columns.values).map(([field, column]): [string, Map<string, Value[]>] => [
    field,
    new Map(Array.isArray(column) ? [["", column]] : Object.entries(column)),
  ]);
  const { timestamp: timestamps, dataSourceId: sourceIds = null } = columns;
  const dimensions = Object.entries(columns.dimensions ?? {});
  const groups =
    dimensions.length === 0
      ? null
      : timestamps.map((_, row): Group => dimensions.map(([name, column]) => [name, column[row] ?? null]));
  return { timestamps, sourceIds, groups, values: new Map(values), stats: new Map(Object.entries(columns.stats ?? {})) };
}

function flatOfRows(rows: NonNullable<PanelAnswer["data"]>): Flat {
  const values = new Map<string, Map<string, Value[]>>();
  const stats: Flat["stats"] = new Map();
  const put = <T>(column: T[], row: number, value: T) => (column[row] = value);
  for (const [row, { values: of, stats: smoothed }] of rows.entries()) {
    for (const [field, value] of Object.entries(of)) {
      const byName = values.get(field) ?? new Map<string, Value[]>();
      values.set(field, byName);
      const each = typeof value === "object" && value !== null ? Object.entries(value) : [["", value] as const];
      for (const [name, one] of each) {
        if (!byName.has(name)) byName.set(name, []);
        put(byName.get(name)!, row, one);
      }
    }
    for (const [field, { min, max }] of Object.entries(smoothed ?? {})) {
      if (!stats.has(field)) stats.set(field, { min: [], max: [] });
      put(stats.get(field)!.min, row, min);
      put(stats.get(field)!.max, row, max);
    }
  }
  const merged = rows.some((row) => row.dataSourceId === undefined);
  const sourceIds = merged ? null : rows.map((row) => row.dataSourceId ?? "");
  const groups = rows.map(({ dimensions }): Group => Object.entries(dimensions ?? {}));
  return { timestamps: rows.map((row) => row.timestamp), sourceIds, groups, values, stats };
}

/** What the rows of an answer are groups of; null for points. */
export function stepOf({ metadata }: PanelAnswer): Step | null {
  const step = metadata.downsampling?.groupBy ?? metadata.groupBy ?? null;
  return step !== null && step in STEP_SECONDS ? step : null;
}

/** Seconds that rows are apart; null for points, and for steps of no fixed length. */
const secondsOf = (step: Step | null): number | null => (step === null ? null : STEP_SECONDS[step]);

export interface Naming {
  /** The name of a source; null where nobody may know it. */
  source: (id: string) => string | null;
  unit: string;
}

const NO_PLACES: ReadonlyMap<string, number> = new Map();

/** Places in the palette: in their order, of groups as they had them in the picture before. */
export const placesOfSeries = (all: Series[], before: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
  all.some(({ group }) => group.length > 0)
    ? placesOf(all.map(({ id, group }) => ({ id, name: labelsInWords(group) })), before)
    : new Map(all.map(({ id }, index) => [id, index]));

/** The series that a chart can draw, with gaps where data is missing. */
export function chartLines(answer: PanelAnswer, naming: Naming, places: ReadonlyMap<string, number> = NO_PLACES): Line[] {
  const all = seriesOf(answer).filter(({ values }) => values.some((value) => typeof value !== "string"));
  const step = stepOf(answer);
  const seconds = secondsOf(step);
  const given = placesOfSeries(all, places);
  return all.map((series) => {
    const isGap = seconds === null ? pointGaps(series.times) : groupGaps(series.times, seconds * 1000);
    const line: Line = {
      id: series.id,
      ref: { bucketId: "", sourceId: series.sourceId ?? "", field: series.field },
      label: labelOf(series, all, naming),
      unit: naming.unit,
      type: series.values.every((value) => typeof value === "boolean") ? "boolean" : "number",
      index: given.get(series.id)!,
      step,
      times: [],
      starts: step === null ? null : [],
      values: [],
      lows: series.lows === null ? null : [],
      highs: series.highs === null ? null : [],
      isBefore: false,
      newest: null,
    };
    for (const [place, at] of series.times.entries()) {
      if (place > 0 && isGap(place)) push(line, (line.times.at(-1)! + at) / 2, null, null, null);
      const value = series.values[place];
      const number = typeof value === "boolean" ? Number(value) : typeof value === "number" ? value : null;
      push(line, at, number, series.lows?.[place] ?? number, series.highs?.[place] ?? number);
    }
    return line;
  });
}

function push(line: Line, at: number, value: number | null, low: number | null, high: number | null): void {
  line.times.push(at);
  line.starts?.push(at);
  line.values.push(value);
  line.lows?.push(low);
  line.highs?.push(high);
}

/** As short as tells the series apart. */
export function labelOf({ sourceId, group, field, aggregation }: Series, all: Series[], naming: Naming): string {
  const several = <T>(of: (series: Series) => T) => new Set(all.map(of)).size > 1;
  const known = sourceId === null ? null : naming.source(sourceId);
  const source =
    known ?? (sourceId !== null && several((one) => one.sourceId) ? `source …${sourceId.slice(-4)}` : null);
  // What all groups have in common is left to the panel's title.
  const grouped = group.length > 0;
  const named = [
    !grouped || several((one) => one.sourceId) ? source : null,
    !grouped || several((one) => one.field) ? field : null,
    grouped ? labelsInWords(group) : null,
  ];
  const parts = [...named, aggregation !== null && several((one) => one.aggregation) ? aggregation : null];
  return parts.filter((part) => part !== null).join(" · ");
}
