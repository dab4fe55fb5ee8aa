/** `POST /api/data/query`: rows for tables and files, columns for charts. */
import { download, request } from "./client";

/** Those that a chart draws. */
export const AGGREGATIONS = [
  "avg",
  "sum",
  "min",
  "max",
  "count",
  "median",
  "p95",
  "p99",
  "range",
  "stddev",
  "first",
  "last",
  "delta",
  "increase",
  "rate",
  "timeAvg",
  "distinct",
] as const;
export type Aggregation = (typeof AGGREGATIONS)[number];

/** Steps that are chosen by name, finest first. */
export const GROUPINGS = [
  "minute",
  "5m",
  "15m",
  "30m",
  "hour",
  "3h",
  "6h",
  "12h",
  "day",
  "week",
  "month",
] as const satisfies Step[];
export type GroupBy = (typeof GROUPINGS)[number];

/** By how much earlier the time is with which a chart is compared. */
export const OFFSETS = ["1d", "7d", "28d", "364d"] as const;
export type Offset = (typeof OFFSETS)[number];

/** The steps of averages that the server chooses from, finest first, in seconds; of months, the usual ones. */
export const STEP_SECONDS = {
  "1s": 1,
  "5s": 5,
  "15s": 15,
  "30s": 30,
  minute: 60,
  "5m": 300,
  "15m": 900,
  "30m": 1_800,
  hour: 3_600,
  "3h": 10_800,
  "6h": 21_600,
  "12h": 43_200,
  day: 86_400,
  week: 604_800,
  month: 30 * 86_400,
} as const satisfies Record<string, number>;
export type Step = keyof typeof STEP_SECONDS;

/** What `maxPoints` may be. */
export const MAX_POINTS_RANGE = { least: 100, most: 10_000 } as const;

/** What the value of a dimension must be; null is absent. */
export type Matcher =
  | string
  | null
  | (string | null)[]
  | { not: string | null | (string | null)[] }
  | { matches: string }
  | { notMatches: string };

export interface Query {
  bucketId: string;
  filters: {
    dataSourceIds: string[];
    startTime?: string;
    endTime?: string;
    fields?: string[];
    /** Conditions on values, by field and operator. */
    values?: Record<string, Record<string, NonNullable<Value>>>;
    metadata?: Record<string, NonNullable<Value>>;
    dimensions?: Record<string, Matcher>;
  };
  /** Of an array, the values of each are members of an object for the field. */
  aggregation?: Aggregation | Aggregation[];
  groupBy?: GroupBy;
  limit?: number;
  offset?: number;
  sort?: "asc" | "desc";
  cursor?: string;
  downsampling?: boolean;
  /** Raw points where no source has more of them than this, else averages of at most so many rows for each. */
  maxPoints?: number;
  /** By whose clock hours, days and longer begin: a name of the IANA database; UTC when absent. */
  timezone?: string;
  /** Adds what stood there before. */
  compare?: { offset: Offset };
  /** Arithmetic over the fields of a row, among its values by name. */
  expressions?: { name: string; expression: string }[];
  /** Groups all sources together; rows then have no `dataSourceId`. */
  mergeSources?: boolean;
  /** Splits groups further, by the values of these dimensions. */
  groupByDimensions?: string[];
  /** Keeps the groups with the greatest values of a field over the whole range, or the least. */
  top?: { n: number; by: Aggregation; field: string; order?: "asc" };
}

export type Value = number | string | boolean | null;

export interface QueryRow {
  /** Absent from groups. */
  _id?: string;
  timestamp: string;
  dataSourceId: string;
  values: Record<string, Value>;
  /** Of groups by dimensions. */
  dimensions?: Record<string, string | null>;
  metadata?: Record<string, unknown>;
  /** What an average smoothed, in rows that were downsampled. */
  stats?: Record<string, { min: number | null; max: number | null }>;
}

interface AnswerMetadata {
  count: number;
  hasMore: boolean;
  nextCursor?: string;
  downsamplingApplied?: boolean;
  downsampling?: { groupBy: Step; expectedPoints: number };
}

export interface QueryAnswer {
  data: QueryRow[];
  metadata: AnswerMetadata;
}

/** The same rows as columns of one length; null where a row has no value. */
export interface Columns {
  timestamp: string[];
  /** Absent where all sources are grouped together. */
  dataSourceId?: string[];
  /** Of groups by dimensions, a column for each name. */
  dimensions?: Record<string, (string | null)[]>;
  values: Record<string, Value[]>;
  /** What stood there before, with `compare`. */
  previous?: Record<string, Value[]>;
  stats?: Record<string, { min: (number | null)[]; max: (number | null)[] }>;
  metadata?: (Record<string, unknown> | null)[];
}

export interface ColumnsAnswer {
  columns: Columns;
  metadata: AnswerMetadata;
}

/** Columns of several aggregations: for each field, the values of each by its name. */
type Nested = Record<string, Partial<Record<Aggregation, (number | null)[]>>>;
interface NestedColumns extends Omit<Columns, "values" | "previous" | "stats"> {
  values: Nested;
  previous?: Nested;
}

/** Rows that one answer holds at most. */
export const QUERY_ROWS_MAX = 10_000;

export const runQuery = (body: Query, signal?: AbortSignal) =>
  request<QueryAnswer>("POST", "/api/data/query", { body, signal });

export const runColumns = (body: Query, signal?: AbortSignal) =>
  request<ColumnsAnswer>("POST", "/api/data/query", { body: { ...body, layout: "columns" }, signal });

/** Averages with the least and greatest of what they average as `stats`, where groups are asked for by name. */
export async function runBanded(body: Query, signal?: AbortSignal): Promise<ColumnsAnswer> {
  const asked = { body: { ...body, aggregation: BAND, layout: "columns" }, signal };
  const { columns, metadata } = await request<{ columns: NestedColumns; metadata: AnswerMetadata }>(
    "POST",
    "/api/data/query",
    asked,
  );
  const { values, previous, ...others } = columns;
  const of = (nested: Nested, name: Aggregation) =>
    Object.fromEntries(Object.entries(nested).map(([field, each]) => [field, each[name] ?? []]));
  const stats = Object.fromEntries(
    Object.entries(values).map(([field, { min = [], max = [] }]) => [field, { min, max }]),
  );
  const before = previous === undefined ? {} : { previous: of(previous, "avg") };
  return { columns: { ...others, values: of(values, "avg"), stats, ...before }, metadata };
}

/** An average and its band. */
export const BAND: Aggregation[] = ["avg", "min", "max"];

/** The formats of a file of rows. */
export const EXPORT_FORMATS = ["csv", "ndjson", "parquet", "arrow"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** A query for a file: all of its rows, however many. */
export interface ExportQuery extends Omit<Query, "aggregation" | "groupBy" | "limit" | "offset" | "cursor"> {
  aggregation?: Exported | Exported[];
  groupBy?: Step;
}
type Exported = Aggregation | "trueShare";

export const exportRows = (
  query: ExportQuery,
  format: ExportFormat,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
) => download("/api/data/export", { ...query, format }, signal, onBytes);
