/** Queries of a view whose lines are groups by dimensions: each keeps the groups that matter for its own fields. Pure. */
import type { Source } from "../api/sources";
import type { DimensionChoice } from "./dimensions";
import type { BucketPlan } from "./plan";
import { storedFields, type Refinement } from "./refinement";
import type { FieldRef } from "./state";

/**
 * One for each source, since the greatest of a view would be those of one source; of sources together, one for each
 * field. `all` are also the fields that the chart leaves out.
 */
export function splitPlans(drawn: FieldRef[], all: FieldRef[], merged: boolean): BucketPlan[] {
  const plans = new Map<string, BucketPlan>();
  for (const { bucketId, sourceId, field } of drawn) {
    const key = JSON.stringify([bucketId, merged ? field : sourceId]);
    const plan = plans.get(key) ?? { bucketId, sourceIds: [], refs: [], fields: [], shares: false };
    plans.set(key, plan);
    if (!plan.sourceIds.includes(sourceId)) plan.sourceIds.push(sourceId);
    if (!plan.fields.includes(field)) plan.fields.push(field);
  }
  const made = [...plans.values()];
  for (const ref of all) {
    const own = made.filter((plan) => plan.bucketId === ref.bucketId && plan.sourceIds.includes(ref.sourceId));
    (own.find(({ fields }) => fields.includes(ref.field)) ?? own[0])?.refs.push(ref);
  }
  return made;
}

/** The field by which groups are compared: of the drawn ones, or of what they are computed of, the first number. */
export function rankOf(
  { sourceIds, fields }: BucketPlan,
  refinement: Refinement,
  sources: ReadonlyMap<string, Source>,
): Pick<BucketPlan, "ranked"> {
  const isNumber = (field: string) => sourceIds.some((id) => sources.get(id)?.schema[field]?.type === "number");
  const ranked = storedFields(refinement, fields).find(isNumber);
  return ranked === undefined ? {} : { ranked };
}

/** Groups that one answer may have. */
export function groupsAtMost({ top }: DimensionChoice, used: Source[], merged: boolean): number {
  const series = used.map(({ stats }) => stats.seriesCount ?? 1);
  const most = merged ? series.reduce((sum, count) => sum + count, 0) : Math.max(1, ...series);
  return Math.max(1, Math.min(top, most));
}
