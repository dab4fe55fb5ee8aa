/** Carries a plan out: the queries of all buckets at once, bands joined to their averages, rows in order of time. */
import {
  QUERY_ROWS_MAX,
  runQuery,
  type Aggregation,
  type GroupBy,
  type Query,
  type QueryAnswer,
  type QueryRow,
} from "../api/query";
import { newerOf, newestPoints, type NewestPoints } from "./newest";
import { hasBand, queryOf, type BucketPlan, type Plan } from "./plan";
import type { Span } from "./range";
import type { FieldRef } from "./state";

export interface Row extends QueryRow {
  /** Milliseconds; `timestamp` keeps every digit. */
  at: number;
}

export interface View {
  span: Span;
  plan: Plan;
  /** Ascending. */
  rows: Row[];
  /** What the rows are groups of; null for points. */
  groupBy: GroupBy | null;
  /** The latest points themselves, newest first. */
  latest: Row[];
  newest: NewestPoints;
  /** There were more rows than an answer holds. */
  truncated: boolean;
  tookMs: number;
}

/** How late a point of a live view may come and still be seen without a reload. */
const LATE_MS = 30_000;

/** Rows of the table under the chart. */
export const LATEST_ROWS = 50;

/** Reads the view. A source that is denser than its average promised is grouped after all. */
export async function fetchView(
  plan: Plan,
  span: Span,
  regroup: () => Plan | null,
  signal: AbortSignal,
): Promise<View> {
  const began = performance.now();
  const parts = await Promise.all(plan.buckets.map((bucket) => fetchBucket(plan, bucket, span, signal)));
  const truncated = parts.some((part) => part.truncated);
  const grouped = truncated && parts.every((part) => part.groupBy === null) ? regroup() : null;
  if (grouped !== null) return fetchView(grouped, span, () => null, signal);
  const rows = parts.flatMap((part) => part.rows).sort((a, b) => a.at - b.at);
  return {
    span,
    plan,
    rows,
    groupBy: parts.find((part) => part.groupBy !== null)?.groupBy ?? null,
    latest: latestOf(parts.flatMap((part) => part.latest)),
    newest: new Map(parts.flatMap((part) => [...part.newest])),
    truncated,
    tookMs: performance.now() - began,
  };
}

/** The view moved on to `span`: what is new is asked for, what has left it is dropped. */
export async function fetchTail(view: View, span: Span, signal: AbortSignal): Promise<View> {
  const from = Math.min(Math.max(span.from, tailStart(view) ?? span.from), span.to - 1);
  // So short a stretch the server would not average by itself.
  const plan: Plan = view.groupBy === null ? view.plan : { ...view.plan, kind: "grouped", groupBy: view.groupBy };
  const tail = await fetchView(plan, { from, to: span.to }, () => null, signal);
  const kept = view.rows.filter((row) => row.at >= span.from && row.at < from);
  const known = new Set(tail.latest.map((row) => row._id));
  return {
    ...tail,
    span,
    newest: newerOf(view.newest, tail.newest),
    groupBy: view.groupBy ?? tail.groupBy,
    rows: [...kept, ...tail.rows],
    latest: latestOf([...tail.latest, ...view.latest.filter((row) => !known.has(row._id) && row.at >= span.from)]),
    truncated: false,
  };
}

/**
 * From where on rows are read again: what came late, by a slower source or a slower way, belongs among them. A group is
 * read again from its own start, as half a group would be another value.
 */
function tailStart(view: View): number | null {
  const last = view.rows.at(-1);
  if (last === undefined) return null;
  if (view.groupBy === null) return last.at - LATE_MS;
  const before = view.rows.findLast((row) => row.at < last.at);
  return before?.at ?? last.at;
}

interface BucketRows {
  rows: Row[];
  latest: Row[];
  newest: NewestPoints;
  groupBy: GroupBy | null;
  truncated: boolean;
}

async function fetchBucket(plan: Plan, bucket: BucketPlan, span: Span, signal: AbortSignal): Promise<BucketRows> {
  const query = queryOf(plan, bucket, span);
  if (plan.kind === "raw") {
    const answer = await runQuery(query, signal);
    const newestFirst = answer.data.map(rowOf);
    const newest = await newestPoints(bucket, answer, span, () => true, signal);
    return {
      rows: newestFirst.slice().reverse(),
      latest: newestFirst.slice(0, LATEST_ROWS),
      newest,
      groupBy: null,
      truncated: answer.metadata.hasMore,
    };
  }
  const latest = runQuery(latestQuery(bucket, span), signal);
  const main = plan.kind === "server" || !hasBand(plan) ? runQuery(query, signal) : withBand(query, signal);
  const [answer, points] = await Promise.all([main, latest]);
  const drawn = (ref: FieldRef) =>
    !bucket.fields.includes(ref.field) ||
    answer.data.some((row) => row.dataSourceId === ref.sourceId && row.values[ref.field] !== undefined);
  return {
    rows: answer.data.map(rowOf),
    latest: points.data.map(rowOf),
    newest: await newestPoints(bucket, points, span, drawn, signal),
    groupBy: groupingOf(plan, answer),
    truncated: answer.metadata.hasMore,
  };
}

function groupingOf(plan: Plan, answer: QueryAnswer): GroupBy | null {
  if (plan.kind === "grouped") return plan.groupBy;
  return answer.metadata.downsamplingApplied === true ? (answer.metadata.downsampling?.groupBy ?? plan.groupBy) : null;
}

function latestQuery(bucket: BucketPlan, span: Span): Query {
  const startTime = new Date(span.from).toISOString();
  const endTime = new Date(span.to).toISOString();
  const filters = { dataSourceIds: bucket.sourceIds, fields: bucket.tableFields, startTime, endTime };
  return { bucketId: bucket.bucketId, filters, limit: LATEST_ROWS, sort: "desc", downsampling: false };
}

/** Averages with the least and greatest of what they average, as the server's own downsampling has them. */
async function withBand(query: Query, signal: AbortSignal): Promise<QueryAnswer> {
  const ask = (aggregation: Aggregation) => runQuery({ ...query, aggregation }, signal);
  const [average, least, greatest] = await Promise.all([ask("avg"), ask("min"), ask("max")]);
  const key = (row: QueryRow) => `${row.timestamp} ${row.dataSourceId}`;
  const lows = new Map(least.data.map((row) => [key(row), row.values]));
  const highs = new Map(greatest.data.map((row) => [key(row), row.values]));
  for (const row of average.data) {
    const low = lows.get(key(row));
    const high = highs.get(key(row));
    if (low === undefined || high === undefined) continue;
    const stats: NonNullable<QueryRow["stats"]> = {};
    for (const field of Object.keys(row.values)) {
      const [min, max] = [low[field], high[field]];
      if (typeof min === "number" && typeof max === "number") stats[field] = { min, max, count: 0 };
    }
    row.stats = stats;
  }
  return average;
}

function latestOf(rows: Row[]): Row[] {
  return rows.sort((a, b) => b.at - a.at).slice(0, LATEST_ROWS);
}

function rowOf(row: QueryRow): Row {
  return { ...row, at: Date.parse(row.timestamp) };
}

/** All points of a span, page by page behind the cursor, oldest first. */
export async function* rawPages(bucket: BucketPlan, span: Span, signal: AbortSignal): AsyncGenerator<QueryRow[]> {
  const { sourceIds: dataSourceIds, fields } = bucket;
  const startTime = new Date(span.from).toISOString();
  const endTime = new Date(span.to).toISOString();
  let cursor: string | undefined;
  do {
    const answer: QueryAnswer = await runQuery(
      {
        bucketId: bucket.bucketId,
        filters: { dataSourceIds, fields, startTime, endTime },
        limit: QUERY_ROWS_MAX,
        downsampling: false,
        ...(cursor === undefined ? {} : { cursor }),
      },
      signal,
    );
    yield answer.data;
    cursor = answer.metadata.nextCursor;
  } while (cursor !== undefined);
}
