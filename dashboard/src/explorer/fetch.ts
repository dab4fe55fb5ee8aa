/** Carries a plan out: the queries of all buckets at once, and the latest points beside them. */
import {
  runBanded,
  runColumns,
  runQuery,
  STEP_SECONDS,
  type QueryAnswer,
  type QueryRow,
  type Step,
} from "../api/query";
import { newerOf, newestPoints, type NewestPoints } from "./newest";
import { hasBand, isSplit, newestQuery, queryOf, type BucketPlan, type Plan } from "./plan";
import type { Span } from "./range";
import { joined, onlyExtremes, tablesOf, type Tables } from "./table";

export interface Row extends QueryRow {
  /** Milliseconds; `timestamp` keeps every digit. */
  at: number;
}

/** What one query brought. */
export interface Part {
  tables: Tables;
  /** What its rows are groups of; null for points. */
  groupBy: Step | null;
  /** Points in the range, of which the rows are averages; null where the server did not count them. */
  points: number | null;
  truncated: boolean;
}

export interface View {
  span: Span;
  plan: Plan;
  /** One for each of the plan's buckets. */
  parts: Part[];
  /** The latest points themselves, newest first. */
  latest: Row[];
  newest: NewestPoints;
  tookMs: number;
  /** When the parts were read as a whole. */
  readAt: number;
}

/** How late a point of a live view may come and still be seen without a reload. */
const LATE_MS = 30_000;
/** A live view of averages is read again as a whole once a step, and never more rarely than this. */
const WHOLE_PERIOD_MS_MAX = 5_000;
/** A live view that came as points is planned anew when it has grown to so many times what the screen shows. */
const GROWN = 2;

/** Rows of the table under the chart. */
export const LATEST_ROWS = 50;

export async function fetchView(plan: Plan, span: Span, signal: AbortSignal): Promise<View> {
  const began = performance.now();
  const [parts, points] = await Promise.all([
    Promise.all(plan.buckets.map((bucket) => fetchPart(plan, bucket, span, signal))),
    fetchLatest(plan, span, signal),
  ]);
  const newest = await newestOf(plan, points, parts, span, signal);
  return { span, plan, parts, latest: latestOf(points), newest, tookMs: performance.now() - began, readAt: Date.now() };
}

/** The view moved on to `span`: what is new is asked for, what has left it is dropped. */
export async function followView(view: View, span: Span, signal: AbortSignal): Promise<View> {
  const began = performance.now();
  // Of groups, a part of the range has others that are the greatest.
  if (view.plan.kind === "auto" || isSplit(view.plan) || view.plan.buckets.some(({ shares }) => shares)) {
    const steps = view.parts.flatMap((part) => part.groupBy ?? []);
    const finest = Math.min(...steps.map((step) => STEP_SECONDS[step] * 1000));
    const due = Date.now() - view.readAt >= Math.min(finest, WHOLE_PERIOD_MS_MAX);
    const grown = view.plan.kind === "auto" && hasGrown(view);
    if ((steps.length > 0 && due) || grown) return fetchView(view.plan, span, signal);
    // A step that goes on changes its last value a little; only the points are asked for each second.
    if (steps.length > 0) return followPoints(view, span, signal);
  }
  const from = Math.min(Math.max(span.from, tailStart(view) ?? span.from), span.to - 1);
  // So short a stretch is never averaged by itself.
  const plan: Plan = view.plan.kind === "grouped" ? view.plan : { ...view.plan, kind: "raw" };
  const tail = await fetchView(plan, { from, to: span.to }, signal);
  const parts = view.parts.map((part, index) => ({
    ...part,
    tables: joined(part.tables, tail.parts[index]!.tables, span.from, from),
  }));
  return { ...movedOn(view, tail, span), parts, tookMs: performance.now() - began };
}

async function followPoints(view: View, span: Span, signal: AbortSignal): Promise<View> {
  const newest = Math.max(span.from, ...[...view.newest.values()].map(({ at }) => at));
  const tail = { from: Math.min(newest - LATE_MS, span.to - 1), to: span.to };
  const points = await fetchLatest(view.plan, tail, signal);
  const found = await newestOf(view.plan, points, [], tail, signal);
  return movedOn(view, { latest: latestOf(points), newest: found }, span);
}

function movedOn(view: View, tail: Pick<View, "latest" | "newest">, span: Span): View {
  const known = new Set(tail.latest.map((row) => row._id));
  const earlier = view.latest.filter((row) => !known.has(row._id) && row.at >= span.from);
  const latest = [...tail.latest, ...earlier].sort((a, b) => b.at - a.at).slice(0, LATEST_ROWS);
  return { ...view, span, latest, newest: newerOf(view.newest, tail.newest) };
}

function hasGrown(view: View): boolean {
  const most = Math.max(
    0,
    ...view.parts.flatMap((part) => [...part.tables.values()].map((table) => table.times.length)),
  );
  return most > view.plan.maxPoints * GROWN;
}

/**
 * From where on rows are read again: what came late, by a slower source or a slower way, belongs among them. A group is
 * read again from its own start, as half a group would be another value.
 */
function tailStart(view: View): number | null {
  const times = view.parts.flatMap((part) => [...part.tables.values()].flatMap((table) => table.times.slice(-2)));
  times.sort((a, b) => b - a);
  const [last] = times;
  if (last === undefined) return null;
  if (view.plan.groupBy === null) return last - LATE_MS;
  return times.find((at) => at < last) ?? last;
}

async function fetchPart(plan: Plan, bucket: BucketPlan, span: Span, signal: AbortSignal): Promise<Part> {
  const query = queryOf(plan, bucket, span);
  const chosen = plan.kind === "auto" || bucket.shares;
  const ask = !chosen && hasBand(plan) ? runBanded : runColumns;
  const { columns, metadata } = await ask(query, signal);
  const groupBy = chosen ? (metadata.downsampling?.groupBy ?? null) : plan.groupBy;
  const tables = tablesOf(columns);
  const extreme = plan.aggregation === "min" || plan.aggregation === "max" ? plan.aggregation : null;
  const stands = chosen && !bucket.shares && groupBy !== null ? extreme : null;
  return {
    tables: stands === null ? tables : onlyExtremes(tables, stands),
    groupBy,
    points: metadata.downsampling?.expectedPoints ?? (groupBy === null ? metadata.count : null),
    truncated: metadata.hasMore,
  };
}

function fetchLatest(plan: Plan, span: Span, signal: AbortSignal): Promise<QueryAnswer[]> {
  return Promise.all(
    plan.buckets.map(({ bucketId, sourceIds, refs }) => {
      const fields = [...new Set(refs.map((ref) => ref.field))];
      return runQuery(newestQuery(plan, { bucketId, sourceIds }, fields, span, LATEST_ROWS), signal);
    }),
  );
}

/** `parts` may be empty: then nothing but the latest points says what is new. */
async function newestOf(
  plan: Plan,
  points: QueryAnswer[],
  parts: Part[],
  span: Span,
  signal: AbortSignal,
): Promise<NewestPoints> {
  const found = await Promise.all(
    plan.buckets.map((bucket, index) =>
      newestPoints(plan, bucket, points[index]!, parts[index] ?? null, span, signal),
    ),
  );
  return new Map(found.flatMap((each) => [...each]));
}

function latestOf(answers: QueryAnswer[]): Row[] {
  const rows = new Map<string, Row>();
  // A point of numbers and booleans comes in two answers, with some of its values in each.
  for (const row of answers.flatMap(({ data }) => data)) {
    const id = row._id ?? "";
    const values = { ...rows.get(id)?.values, ...row.values };
    rows.set(id, { ...row, values, at: Date.parse(row.timestamp) });
  }
  return [...rows.values()].sort((a, b) => b.at - a.at).slice(0, LATEST_ROWS);
}
