/** What a file of the view asks for: what is shown, or every point. Pure. */
import type { ExportQuery } from "../api/query";
import type { Source } from "../api/sources";
import type { View } from "./fetch";
import { canTake, hasBand, pointPlans, pointsQuery, queryOf, type BucketPlan, type Taken } from "./plan";
import type { Span } from "./range";
import { storedFields } from "./refinement";
import type { FieldRef } from "./state";

/** One query for each bucket of the view. */
export function shownQueries(view: View, sources: ReadonlyMap<string, Source>): ExportQuery[] {
  return view.plan.buckets.map((bucket, index) => {
    const step = view.parts[index]?.groupBy ?? null;
    const { plan } = view;
    if (step === null) return pointsQuery(plan, bucket, view.span);
    const chosen = plan.kind === "auto" || bucket.shares;
    const { limit: _, ...query } = queryOf(plan, bucket, view.span);
    if (!chosen) return query;
    // The step that the server has chosen, by name, so that the file has the extremes of the averages as well.
    const { maxPoints: __, ...stepped } = query;
    const stored = storedFields(plan.refinement, bucket.fields);
    const fields = stored.filter((field) => isDrawn(bucket, field, sources));
    // Expressions compute with one value for each field.
    const several = (hasBand(plan) && query.expressions === undefined) || bucket.shares;
    const aggregation = several ? shown(bucket, fields, sources) : plan.aggregation;
    return { ...stepped, filters: { ...stepped.filters, fields }, groupBy: step, aggregation };
  });
}

/** Every point of the fields in the range that the view takes. */
export function pointQueries(
  taken: Taken,
  fields: FieldRef[],
  span: Span,
  sources: ReadonlyMap<string, Source>,
): ExportQuery[] {
  const matched = fields.filter(({ sourceId }) => canTake(taken, sourceId, sources));
  return pointPlans(matched).map((bucket) => pointsQuery(taken, bucket, span));
}

/** Averages with their band, and the share of time that a switch was true. */
function shown(bucket: BucketPlan, fields: string[], sources: ReadonlyMap<string, Source>) {
  const has = (type: string) => fields.some((field) => typesOf(bucket, field, sources).has(type));
  return [
    ...(has("number") ? (["avg", "min", "max"] as const) : []),
    ...(has("boolean") ? (["trueShare"] as const) : []),
  ];
}

/** Averages leave texts out. */
const isDrawn = (bucket: BucketPlan, field: string, sources: ReadonlyMap<string, Source>): boolean =>
  [...typesOf(bucket, field, sources)].some((type) => type !== "string");

const typesOf = (bucket: BucketPlan, field: string, sources: ReadonlyMap<string, Source>): Set<string | undefined> =>
  new Set(bucket.sourceIds.map((id) => sources.get(id)?.schema[field]?.type).filter((type) => type !== undefined));
