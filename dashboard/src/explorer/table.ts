/** Answers as the chart reads them: the columns of each source, in order of time. Pure. */
import type { Columns, Value } from "../api/query";

export interface SourceTable {
  /** `MERGED` of all sources together. */
  sourceId: string;
  /** Of a group by dimensions, their values in order; empty otherwise. */
  group: Group;
  /** Milliseconds, ascending; `timestamps` keep every digit. */
  times: number[];
  timestamps: string[];
  /** By field, as are the next two. */
  values: Map<string, Value[]>;
  /** What stood there before; empty unless it was asked for. */
  previous: Map<string, Value[]>;
  /** The least and the greatest of what an average smoothed. */
  lows: Map<string, (number | null)[]>;
  highs: Map<string, (number | null)[]>;
  /** Of points; groups have none. */
  metadata: (Record<string, unknown> | null)[] | null;
}

/** What all sources together have in place of an id. */
export const MERGED = "";

/** Names and values of dimensions; null is absent. */
export type Group = readonly (readonly [name: string, value: string | null])[];

/** The id of a table: of a source, or of a group of its series. */
export const tableId = (sourceId: string, group: Group): string =>
  group.length === 0 ? sourceId : `${sourceId} ${JSON.stringify(group.map(([, value]) => value))}`;

/** In the order in which people look for them: numbers in a name count, absent stands first. */
export function byGroup(a: { group: Group }, b: { group: Group }): number {
  for (const [place, [, value]] of a.group.entries()) {
    const other = b.group[place]?.[1] ?? null;
    if (value === other) continue;
    if (value === null || other === null) return value === null ? -1 : 1;
    return value.localeCompare(other, "en", { numeric: true }) || (value < other ? -1 : 1);
  }
  return a.group.length - b.group.length;
}

/** By `tableId`. */
export type Tables = ReadonlyMap<string, SourceTable>;

export function tablesOf(columns: Columns): Tables {
  const places = new Map<string, { sourceId: string; group: Group; rows: number[] }>();
  const dimensions = Object.entries(columns.dimensions ?? {});
  for (const row of columns.timestamp.keys()) {
    const sourceId = columns.dataSourceId?.[row] ?? MERGED;
    const group = dimensions.map(([name, column]) => [name, column[row] ?? null] as const);
    const id = tableId(sourceId, group);
    const place = places.get(id);
    if (place === undefined) places.set(id, { sourceId, group, rows: [row] });
    else place.rows.push(row);
  }
  const times = parsed(columns.timestamp);
  const tables = new Map<string, SourceTable>();
  for (const [id, { sourceId, group, rows }] of places) {
    if (rows.length > 1 && times[rows[0]!]! > times[rows.at(-1)!]!) rows.reverse();
    const pick = <T>(column: T[]): T[] => rows.map((row) => column[row]!);
    const each = <T, U>(record: Record<string, T>, column: (of: T) => U[]) =>
      new Map(Object.entries(record).map(([field, of]) => [field, pick(column(of))]));
    const stats = columns.stats ?? {};
    tables.set(id, {
      sourceId,
      group,
      times: pick(times),
      timestamps: pick(columns.timestamp),
      values: each(columns.values, (column) => column),
      previous: each(columns.previous ?? {}, (column) => column),
      lows: each(stats, ({ min }) => min),
      highs: each(stats, ({ max }) => max),
      metadata: columns.metadata === undefined ? null : pick(columns.metadata),
    });
  }
  return tables;
}

/** Sources of one step share their times, and rows come in order of time: most times need no second reading. */
function parsed(timestamps: string[]): number[] {
  let [before, at] = ["", NaN];
  return timestamps.map((text) => {
    if (text !== before) [before, at] = [text, Date.parse(text)];
    return at;
  });
}

/** `before` of the times from `start` to `end`, that not included, and `after` behind it. */
export function joined(before: Tables, after: Tables, start: number, end: number): Tables {
  const tables = new Map<string, SourceTable>();
  for (const id of new Set([...before.keys(), ...after.keys()])) {
    const [old, late] = [before.get(id), after.get(id)];
    const kept = old === undefined ? null : cut(old, start, end);
    if (kept === null || late === undefined) tables.set(id, (kept ?? late)!);
    else tables.set(id, appended(kept, late));
  }
  return tables;
}

function cut(table: SourceTable, start: number, end: number): SourceTable {
  const first = table.times.findIndex((at) => at >= start);
  const behind = table.times.findLastIndex((at) => at < end) + 1;
  const part = <T>(column: T[]): T[] => (first < 0 ? [] : column.slice(first, behind));
  const parts = <T>(columns: Map<string, T[]>) => new Map([...columns].map(([field, column]) => [field, part(column)]));
  return {
    ...table,
    times: part(table.times),
    timestamps: part(table.timestamps),
    values: parts(table.values),
    previous: parts(table.previous),
    lows: parts(table.lows),
    highs: parts(table.highs),
    metadata: table.metadata === null ? null : part(table.metadata),
  };
}

function appended(a: SourceTable, b: SourceTable): SourceTable {
  const both = <T>(left: Map<string, (T | null)[]>, right: Map<string, (T | null)[]>) =>
    new Map(
      [...new Set([...left.keys(), ...right.keys()])].map((field) => [
        field,
        [
          ...(left.get(field) ?? new Array<null>(a.times.length).fill(null)),
          ...(right.get(field) ?? new Array<null>(b.times.length).fill(null)),
        ],
      ]),
    );
  return {
    ...a,
    times: [...a.times, ...b.times],
    timestamps: [...a.timestamps, ...b.timestamps],
    values: both(a.values, b.values),
    previous: both(a.previous, b.previous),
    lows: both(a.lows, b.lows),
    highs: both(a.highs, b.highs),
    metadata: a.metadata === null || b.metadata === null ? null : [...a.metadata, ...b.metadata],
  };
}

/** The least or the greatest of what averages smooth in their place: a step of the server's choice has no others. */
export function onlyExtremes(averages: Tables, extreme: "min" | "max"): Tables {
  const none = new Map<string, (number | null)[]>();
  return new Map(
    [...averages].map(([id, table]) => [
      id,
      { ...table, values: new Map(extreme === "min" ? table.lows : table.highs), lows: none, highs: none },
    ]),
  );
}
