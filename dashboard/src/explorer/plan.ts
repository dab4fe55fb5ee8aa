/**
 * How a view is asked for. By itself the server chooses: points while the screen can show them one by one, else
 * averages of about a value for each pixel, or the least or the greatest of what these smooth. A grouping that was
 * asked for by name stays what it is, and so does the unit of a sum or a count.
 * Pure; `fetch.ts` carries a plan out.
 */
import {
  BAND,
  GROUPINGS,
  MAX_POINTS_RANGE,
  QUERY_ROWS_MAX,
  STEP_SECONDS,
  type Aggregation,
  type GroupBy,
  type Offset,
  type Query,
} from "../api/query";
import type { Source } from "../api/sources";
import { UNSPLIT, canHold, dimensionFilters, isKnown, topOfEach, type DimensionChoice, type DimensionNames } from "./dimensions";
import { timesOf, type Span } from "./range";
import { UNREFINED, canMatch, isFiltered, membersOf, storedFields, type Refinement } from "./refinement";
import { groupsAtMost, rankOf, splitPlans } from "./split-plan";
import type { ExplorerState, FieldRef } from "./state";

/** One query: the endpoint answers for one bucket at a time, with as many sources as an answer has rows for. */
export interface BucketPlan {
  bucketId: string;
  sourceIds: string[];
  /** The fields of the view that belong to these sources, texts too; booleans that another query is for are not. */
  refs: FieldRef[];
  /** What the chart asks for. */
  fields: string[];
  /** Booleans of a view of a chosen grouping: by a step of the server's choice, as the share of time true. */
  shares: boolean;
  /** The field by whose values groups by dimensions are kept; absent where none can be compared. */
  ranked?: string;
}

/** Which points a view takes of its sources, and what it computes of them. */
export interface Taken {
  refinement: Refinement;
  dimensions: DimensionChoice;
  /** Which dimensions the sources have, as far as it is known. */
  names: DimensionNames;
}

export interface Plan extends Taken {
  /** `auto`: the server chooses. `raw`: points. `grouped`: by name. */
  kind: "auto" | "raw" | "grouped";
  groupBy: GroupBy | null;
  aggregation: Aggregation;
  /** By how much earlier the time is that groups by name are compared with. */
  compare: Offset | null;
  /** Rows for each source that an automatic view asks for at most. */
  maxPoints: number;
  /** By whose clock days begin; null for UTC. */
  timezone: string | null;
  buckets: BucketPlan[];
  /** The grouping that was asked for, when its rows would not fit into an answer. */
  coarsenedFrom: GroupBy | null;
  /** Fields that groups by name leave out: they average numbers alone. */
  leftOut: string[];
  /** Names of sources of which no point can match. */
  unmatched: string[];
}

const NO_NAMES: DimensionNames = new Map();

/** Groups by name may be a little finer than the screen: the next unit is up to sixty times as coarse. */
const ROWS_PER_PX_MAX = 1.5;

export function planOf(
  state: ExplorerState,
  sources: ReadonlyMap<string, Source>,
  span: Span,
  widthPx: number,
  now: number,
  timezone: string | null = null,
  names: DimensionNames = NO_NAMES,
): Plan {
  const typeOf = (ref: FieldRef) => sources.get(ref.sourceId)?.schema[ref.field]?.type;
  const { refinement = UNREFINED, dimensions: choice = UNSPLIT } = state;
  const dimensions = { ...choice, top: topOfEach(choice, state.fields.length) };
  const { merged } = refinement;
  const split = dimensions.groups.length > 0;
  const taken = { refinement, dimensions, names };
  const isMatched = ({ sourceId }: FieldRef) => canTake(taken, sourceId, sources);
  const fields = state.fields.filter(isMatched);
  const unmatched = state.fields.flatMap((ref) => (isMatched(ref) ? [] : (sources.get(ref.sourceId)?.name ?? [])));
  const numbers = fields.filter((ref) => typeOf(ref) === "number");
  const aggregation = state.aggregation === "auto" ? "avg" : state.aggregation;
  const { least, most } = MAX_POINTS_RANGE;
  const plan = {
    aggregation,
    compare: null,
    groupBy: null,
    timezone,
    maxPoints: Math.max(least, Math.min(most, Math.round(widthPx))),
    coarsenedFrom: null,
    leftOut: [],
    ...taken,
    unmatched: [...new Set(unmatched)],
  };

  // The server's own choice has averages and extremes, of computed values averages alone, and a line for each source;
  // all else are groups by name.
  const computed = fields.some((ref) => sources.get(ref.sourceId)?.schema[ref.field]?.expression !== undefined);
  const extreme = (aggregation === "min" || aggregation === "max") && !computed;
  const chosen = (aggregation === "avg" || extreme) && !merged && !split;
  const byName = state.groupBy !== "auto" || state.compare !== null || !chosen;
  // Groups by name have no booleans, their extremes say nothing, and points may be more than an answer holds: beside
  // another choice they are asked for by themselves.
  const raw = state.groupBy === "raw";
  const counted = isCount(aggregation) && !raw;
  const apart = (byName || aggregation !== "avg") && !counted;
  const booleans = apart && (raw || !(merged || split)) ? fields.filter((ref) => typeOf(ref) === "boolean") : [];
  const others = fields.filter((ref) => !booleans.includes(ref));
  const shares = bucketPlans(booleans, booleans, sharesMax(raw, plan.maxPoints), true);
  if (!byName && fields.some((ref) => typeOf(ref) !== "string")) {
    return { ...plan, kind: "auto", buckets: [...bucketPlans(others, others, plan.maxPoints), ...shares] };
  }
  const drawn = counted ? fields : numbers;
  if (state.groupBy === "raw" || drawn.length + booleans.length === 0) {
    return { ...plan, kind: "raw", aggregation: "avg", buckets: [...bucketPlans(others, others, 1), ...shares] };
  }

  const used = [...new Set(drawn.map((ref) => ref.sourceId))].flatMap((id) => sources.get(id) ?? []);
  const rows = (unit: GroupBy) => Math.max(1, ...used.map((source) => rowsOf(source, span, unit, now)));
  const groups = split ? groupsAtMost(dimensions, used, merged) : 1;
  const rowsMax = Math.floor(QUERY_ROWS_MAX / groups);
  const asked = state.groupBy === "auto" ? null : state.groupBy;
  const groupBy =
    asked === null
      ? GROUPINGS.find((unit) => rows(unit) <= Math.min(rowsMax, Math.max(least, widthPx) * ROWS_PER_PX_MAX))
      : GROUPINGS.slice(GROUPINGS.indexOf(asked)).find((unit) => rows(unit) <= rowsMax);
  const unit = groupBy ?? "month";
  const plans = split
    ? splitPlans(drawn, others, merged).map((one) => ({ ...one, ...rankOf(one, refinement, sources) }))
    : // Together, the sources have the rows of one.
      bucketPlans(drawn, others, merged ? 1 : rows(unit));
  return {
    ...plan,
    kind: "grouped",
    groupBy: unit,
    compare: state.compare,
    buckets: [...plans, ...shares],
    coarsenedFrom: asked === unit ? null : asked,
    leftOut: [...new Set(others.filter((ref) => !drawn.includes(ref)).map((ref) => ref.field))],
  };
}

/** Aggregations of values of every type, which are numbers of something. */
export const isCount = (aggregation: Aggregation): boolean => aggregation === "count" || aggregation === "distinct";

/** Averages hide what they smooth; of the other aggregations the name says what is shown. Bands of groups cover each other. */
export const hasBand = (plan: Plan): boolean => plan.kind !== "raw" && plan.aggregation === "avg" && !isSplit(plan);

/** Whether each group by dimensions is a line. */
export const isSplit = (plan: Plan): boolean => plan.kind === "grouped" && plan.dimensions.groups.length > 0;

/** Whether some points of the sources may be left out. */
export const isPartial = ({ refinement, dimensions }: Taken): boolean =>
  isFiltered(refinement) || dimensions.conditions.length > 0;

/** Whether some point of a source may be in the view. */
export function canTake(
  { refinement, dimensions, names }: Taken,
  sourceId: string,
  sources: ReadonlyMap<string, Source>,
): boolean {
  const source = sources.get(sourceId);
  return source === undefined || (canMatch(refinement, source) && canHold(dimensions, names, sourceId));
}

/** Points stay points as long as an answer holds them. */
const sharesMax = (raw: boolean, maxPoints: number): number => (raw ? MAX_POINTS_RANGE.most : maxPoints);

/** Whether the lines of a plan are of several sources each. */
export const isMerged = (plan: Plan): boolean => plan.kind === "grouped" && plan.refinement.merged;

/** All points of these fields: one query for each bucket. */
export const pointPlans = (fields: FieldRef[]): BucketPlan[] => bucketPlans(fields, fields, 1);

/** The query of a plan for one bucket, as it is sent and as the curl text shows it. */
export function queryOf(plan: Plan, bucket: BucketPlan, span: Span): Query {
  const query = takenQuery(plan, bucket, bucket.fields, span);
  const zoned = plan.timezone === null ? query : { ...query, timezone: plan.timezone };
  if (bucket.shares) return { ...zoned, maxPoints: sharesMax(plan.kind === "raw", plan.maxPoints) };
  if (plan.kind === "auto") return { ...zoned, maxPoints: plan.maxPoints };
  // The newest points are the ones to see, when there are more than an answer holds.
  if (plan.groupBy === null) return { ...query, limit: QUERY_ROWS_MAX, sort: "desc", downsampling: false };
  return {
    ...zoned,
    limit: QUERY_ROWS_MAX,
    aggregation: hasBand(plan) ? BAND : plan.aggregation,
    groupBy: plan.groupBy,
    ...(isMerged(plan) ? { mergeSources: true } : {}),
    ...(isSplit(plan) ? groupMembers(plan, bucket) : {}),
    ...(plan.compare === null ? {} : { compare: { offset: plan.compare } }),
  };
}

/** Groups by those of the names that the sources have, the greatest or the least of them. */
function groupMembers(
  { dimensions: { groups, top, least }, names, aggregation }: Plan,
  { sourceIds, ranked }: BucketPlan,
): Partial<Query> {
  const known = groups.filter((name) => isKnown(names, sourceIds, name));
  if (known.length === 0) return {};
  if (ranked === undefined) return { groupByDimensions: known };
  const order = least ? { order: "asc" as const } : {};
  return { groupByDimensions: known, top: { n: top, by: aggregation, field: ranked, ...order } };
}

/** The points of sources, of which a view may leave some out, and compute more fields. */
function takenQuery(
  { refinement, dimensions, names }: Taken,
  { bucketId, sourceIds: dataSourceIds }: Pick<BucketPlan, "bucketId" | "sourceIds">,
  fields: string[],
  span: Span,
): Query {
  const { query, filters } = membersOf(refinement, fields);
  const series = dimensionFilters(dimensions, names, dataSourceIds);
  const stored = storedFields(refinement, fields);
  return { bucketId, filters: { dataSourceIds, fields: stored, ...timesOf(span), ...filters, ...series }, ...query };
}

/** The newest points, so many. */
export const newestQuery = (
  taken: Taken,
  sources: Pick<BucketPlan, "bucketId" | "sourceIds">,
  fields: string[],
  span: Span,
  limit: number,
): Query => ({ ...takenQuery(taken, sources, fields, span), limit, sort: "desc", downsampling: false });

/** All points that a view takes. */
export const pointsQuery = (taken: Taken, bucket: BucketPlan, span: Span): Query =>
  takenQuery(taken, bucket, bucket.fields, span);

/** Groups of a unit in the part of `span` in which the source has points at all. */
function rowsOf(source: Source, span: Span, unit: GroupBy, now: number): number {
  const { firstDataPoint, lastDataPoint } = source.stats;
  if (firstDataPoint === null || lastDataPoint === null) return 0;
  const from = Math.max(span.from, Date.parse(firstDataPoint));
  // A source that goes on sending has newer points than when it was looked up.
  const to = Math.min(span.to, Math.max(Date.parse(lastDataPoint), now));
  return from > to ? 0 : Math.ceil((to - from) / 1000 / STEP_SECONDS[unit]) + 1;
}

/** Sources without a field to draw have no part in the plan. `rows` is what one source may need of an answer. */
function bucketPlans(drawn: FieldRef[], all: FieldRef[], rows: number, shares = false): BucketPlan[] {
  const sourcesMax = Math.max(1, Math.floor(QUERY_ROWS_MAX / rows));
  const plans: BucketPlan[] = [];
  for (const { bucketId, sourceId, field } of drawn) {
    let plan = plans.find((one) => one.bucketId === bucketId && one.sourceIds.includes(sourceId));
    if (plan === undefined) {
      plan = plans.findLast((one) => one.bucketId === bucketId && one.sourceIds.length < sourcesMax);
      plan?.sourceIds.push(sourceId);
    }
    if (plan === undefined) {
      plan = { bucketId, sourceIds: [sourceId], refs: [], fields: [], shares };
      plans.push(plan);
    }
    if (!plan.fields.includes(field)) plan.fields.push(field);
  }
  for (const plan of plans) plan.refs = all.filter((ref) => plan.sourceIds.includes(ref.sourceId));
  return plans;
}
