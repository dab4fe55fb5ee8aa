/** `POST /api/data/query`: rows for tables and files, columns for charts. */
import { request } from "./client";

export const AGGREGATIONS = ["avg", "sum", "min", "max", "count"] as const;
export type Aggregation = (typeof AGGREGATIONS)[number];

/** Finest first. */
export const GROUPINGS = ["minute", "hour", "day", "week", "month"] as const;
export type GroupBy = (typeof GROUPINGS)[number];

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
} as const satisfies Record<GroupBy | string, number>;
export type Step = keyof typeof STEP_SECONDS;

/** What `maxPoints` may be. */
export const MAX_POINTS_RANGE = { least: 100, most: 10_000 } as const;

export interface Query {
  bucketId: string;
  filters: {
    dataSourceIds: string[];
    startTime?: string;
    endTime?: string;
    fields?: string[];
  };
  aggregation?: Aggregation;
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
}

export type Value = number | string | boolean | null;

export interface QueryRow {
  /** Absent from groups. */
  _id?: string;
  timestamp: string;
  dataSourceId: string;
  values: Record<string, Value>;
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
  dataSourceId: string[];
  values: Record<string, Value[]>;
  stats?: Record<string, { min: (number | null)[]; max: (number | null)[] }>;
  metadata?: (Record<string, unknown> | null)[];
}

export interface ColumnsAnswer {
  columns: Columns;
  metadata: AnswerMetadata;
}

/** Rows that one answer holds at most. */
export const QUERY_ROWS_MAX = 10_000;

export const runQuery = (body: Query, signal?: AbortSignal) =>
  request<QueryAnswer>("POST", "/api/data/query", { body, signal });

export const runColumns = (body: Query, signal?: AbortSignal) =>
  request<ColumnsAnswer>("POST", "/api/data/query", { body: { ...body, layout: "columns" }, signal });
