/**
 * How a view is asked for: raw points while the screen can show them, else groups no finer than it can, in as few
 * calls as that takes. Pure; `fetch.ts` carries a plan out.
 */
import { GROUPINGS, QUERY_ROWS_MAX, type Aggregation, type GroupBy, type Query } from "../api/query";
import type { Source } from "../api/sources";
import type { Span } from "./range";
import type { ExplorerState, FieldRef } from "./state";

/** The queries of one bucket: the query endpoint answers for one bucket at a time. */
export interface BucketPlan {
  bucketId: string;
  sourceIds: string[];
  /** The fields of the view that belong to these sources, texts and switches too. */
  refs: FieldRef[];
  /** What the chart needs. */
  fields: string[];
  /** What the table of latest points shows: texts and switches too. */
  tableFields: string[];
}

export interface Plan {
  /**
   * `raw`: points. `server`: the server groups by itself, and sends the band along, in one call. `grouped`: asked for
   * by name, and three calls where a band belongs to it.
   */
  kind: "raw" | "server" | "grouped";
  groupBy: GroupBy | null;
  aggregation: Aggregation;
  buckets: BucketPlan[];
  expectedPoints: number;
  /** The grouping that was asked for, when its rows would not fit into an answer. */
  coarsenedFrom: GroupBy | null;
  /** Fields that groups leave out: no average of a text or a switch. */
  leftOut: string[];
}

export const UNIT_SECONDS: Record<GroupBy, number> = {
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
};

/** Points of all lines together that are fetched and drawn one by one. */
export const RAW_POINTS_MAX = 6_000;
/** From where the server downsamples by itself, and what it aims at. */
const SERVER_POINTS_MAX = 500;

export function planOf(
  state: ExplorerState,
  sources: ReadonlyMap<string, Source>,
  span: Span,
  widthPx: number,
  now: number,
): Plan {
  const used = [...new Set(state.fields.map((ref) => ref.sourceId))].flatMap((id) => sources.get(id) ?? []);
  const expectedPoints = used.reduce((sum, source) => sum + expectedPointsOf(source, span, now), 0);
  const isNumber = (sourceId: string, field: string) => sources.get(sourceId)?.schema[field]?.type === "number";
  const numbers = state.fields.filter((ref) => isNumber(ref.sourceId, ref.field));
  const explicit = state.aggregation !== "auto" || (state.groupBy !== "auto" && state.groupBy !== "raw");
  const aggregation = state.aggregation === "auto" ? "avg" : state.aggregation;
  const counted = aggregation === "count";

  const raw =
    state.groupBy === "raw" || (numbers.length === 0 && !counted) || (!explicit && expectedPoints <= RAW_POINTS_MAX);
  if (raw) {
    const buckets = bucketPlans(state.fields, state.fields);
    return {
      kind: "raw",
      groupBy: null,
      aggregation: "avg",
      buckets,
      expectedPoints,
      coarsenedFrom: null,
      leftOut: [],
    };
  }

  const shown = counted ? state.fields : numbers;
  const leftOut = counted ? [] : state.fields.filter((ref) => !numbers.includes(ref)).map((ref) => ref.field);
  const buckets = bucketPlans(shown, state.fields);
  const rows = (unit: GroupBy) => expectedRows(used, span, unit, now);
  const fits = (unit: GroupBy) => rows(unit).total <= QUERY_ROWS_MAX;
  const asked = state.groupBy === "auto" || state.groupBy === "raw" ? null : state.groupBy;
  const screenRows = Math.max(600, Math.round(widthPx * 1.5));
  const finest = GROUPINGS.find((unit) => fits(unit) && rows(unit).most <= screenRows) ?? "month";
  const groupBy = asked === null ? finest : (GROUPINGS.slice(GROUPINGS.indexOf(asked)).find(fits) ?? "month");

  const serverUnit = GROUPINGS.find((unit) => rows(unit).total <= SERVER_POINTS_MAX) ?? "month";
  const server =
    !explicit &&
    groupBy === serverUnit &&
    buckets.length === 1 &&
    expectedPoints > SERVER_POINTS_MAX &&
    used.every((source) => source.downsampling);
  return {
    kind: server ? "server" : "grouped",
    groupBy,
    aggregation,
    buckets,
    expectedPoints,
    coarsenedFrom: asked !== null && asked !== groupBy ? asked : null,
    leftOut: [...new Set(leftOut)],
  };
}

/** Calls that a plan costs each time that it is carried out. */
export function callsOf(plan: Plan): number {
  const each = plan.kind === "grouped" && hasBand(plan) ? 3 : 1;
  // Beside groups, the table under the chart asks for the latest points themselves.
  return plan.buckets.length * (plan.kind === "raw" ? 1 : each + 1);
}

/** Averages hide what they smooth; of the other aggregations the name says what is shown. */
export const hasBand = (plan: Plan): boolean => plan.kind !== "raw" && plan.aggregation === "avg";

/** The main query of a plan for one bucket, as it is sent and as the curl text shows it. */
export function queryOf(plan: Plan, bucket: BucketPlan, span: Span): Query {
  const query: Query = {
    bucketId: bucket.bucketId,
    filters: {
      dataSourceIds: bucket.sourceIds,
      fields: bucket.fields,
      startTime: new Date(span.from).toISOString(),
      endTime: new Date(span.to).toISOString(),
    },
    limit: QUERY_ROWS_MAX,
  };
  // The newest points are the ones to see, when there are more than an answer holds.
  if (plan.kind === "raw") return { ...query, sort: "desc", downsampling: false };
  if (plan.kind === "server") return query;
  return { ...query, aggregation: plan.aggregation, groupBy: plan.groupBy ?? "hour" };
}

/** The part of `span` in which the source has points at all. */
function clipped(source: Source, span: Span, now: number): Span | null {
  const { firstDataPoint, lastDataPoint } = source.stats;
  if (firstDataPoint === null || lastDataPoint === null) return null;
  const from = Math.max(span.from, Date.parse(firstDataPoint));
  // A source that goes on sending has newer points than when it was looked up.
  const to = Math.min(span.to, Math.max(Date.parse(lastDataPoint), now));
  return from <= to ? { from, to } : null;
}

function expectedPointsOf(source: Source, span: Span, now: number): number {
  const { averageIntervalSeconds, totalDataPoints } = source.stats;
  const part = clipped(source, span, now);
  if (part === null) return 0;
  if (averageIntervalSeconds === null || averageIntervalSeconds <= 0) return totalDataPoints;
  return (part.to - part.from) / 1000 / averageIntervalSeconds;
}

function expectedRows(sources: Source[], span: Span, unit: GroupBy, now: number): { most: number; total: number } {
  const each = sources.map((source) => {
    const part = clipped(source, span, now);
    return part === null ? 0 : Math.ceil((part.to - part.from) / 1000 / UNIT_SECONDS[unit]) + 1;
  });
  return { most: Math.max(0, ...each), total: each.reduce((sum, rows) => sum + rows, 0) };
}

/** Buckets without a field to draw have no part in the plan. */
function bucketPlans(drawn: FieldRef[], all: FieldRef[]): BucketPlan[] {
  const plans = new Map<string, BucketPlan>();
  for (const { bucketId, sourceId, field } of drawn) {
    const plan = plans.get(bucketId) ?? { bucketId, sourceIds: [], refs: [], fields: [], tableFields: [] };
    if (!plan.sourceIds.includes(sourceId)) plan.sourceIds.push(sourceId);
    if (!plan.fields.includes(field)) plan.fields.push(field);
    plans.set(bucketId, plan);
  }
  for (const plan of plans.values()) {
    plan.refs = all.filter((ref) => plan.sourceIds.includes(ref.sourceId));
    plan.tableFields = [...new Set(plan.refs.map((ref) => ref.field))];
  }
  return [...plans.values()];
}
