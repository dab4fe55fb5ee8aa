/** `POST /api/data/query`, raw and grouped. */
import { request } from "./client";

export const AGGREGATIONS = ["avg", "sum", "min", "max", "count"] as const;
export type Aggregation = (typeof AGGREGATIONS)[number];

/** Finest first. */
export const GROUPINGS = ["minute", "hour", "day", "week", "month"] as const;
export type GroupBy = (typeof GROUPINGS)[number];

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
  stats?: Record<string, { min: number; max: number; count: number }>;
}

export interface QueryAnswer {
  data: QueryRow[];
  metadata: {
    count: number;
    hasMore: boolean;
    nextCursor?: string;
    groupBy?: GroupBy;
    aggregation?: Aggregation;
    downsamplingApplied?: boolean;
    downsampling?: { groupBy: GroupBy; expectedPoints: number };
  };
}

/** Rows that one answer holds at most. */
export const QUERY_ROWS_MAX = 10_000;

export const runQuery = (body: Query, signal?: AbortSignal) =>
  request<QueryAnswer>("POST", "/api/data/query", { body, signal });
