/** What is drawn, in a sentence under the chart, and what is left out of it. Pure. */
import type { Aggregation } from "../api/query";
import type { Source } from "../api/sources";
import { formatCount, plural } from "../app/format";
import { conditionInWords } from "./dimension-words";
import type { Part, View } from "./fetch";
import { hasBand, isMerged, isPartial, isSplit } from "./plan";
import { pointsOf, type Line } from "./series";
import type { FieldRef } from "./state";
import { stepName } from "./steps";

const WHAT: Record<Aggregation, string> = {
  avg: "the mean",
  sum: "the sum",
  min: "the least value",
  max: "the greatest value",
  count: "the number of points",
  median: "the median",
  p95: "the 95th percentile",
  p99: "the 99th percentile",
  range: "the range from least to greatest",
  stddev: "the standard deviation",
  first: "the first value",
  last: "the last value",
  delta: "the change from first to last",
  increase: "the growth of the counter",
  rate: "the growth of the counter per second",
  timeAvg: "the average over time",
  distinct: "the number of distinct values",
};

/** `720 values a line` and `, averaged by 5 s of 10,800 points; the band is min to max`. */
export function noteOf(view: View, all: Line[]): { drawn: string; how: string } {
  // Of booleans beside numbers the remarks tell.
  const { shares, others } = byShares(view);
  const beside = shares.length > 0 && others.length > 0 && view.parts.some((part) => part.groupBy !== null);
  const parts = beside ? others : view.parts;
  const lines = beside ? all.filter((line) => line.type !== "boolean") : all;
  const steps = [...new Set(parts.flatMap((part) => part.groupBy ?? []))].map((step) => stepName(step));
  if (steps.length === 0) {
    return {
      drawn: plural(
        lines.reduce((sum, line) => sum + pointsOf(line), 0),
        "point",
      ),
      how: " as they came",
    };
  }
  const counts = lines.map(pointsOf);
  const most = Math.max(0, ...counts);
  const values = `${counts.every((count) => count === most) ? "" : "up to "}${plural(most, "value")}`;
  const drawn = lines.length > 1 ? `${values} a line` : values;
  const mixed = parts.some((part) => part.groupBy === null) ? ", others as raw points" : "";
  const averaged = hasBand(view.plan) || others.length === 0;
  if (!averaged) return { drawn, how: `, ${WHAT[view.plan.aggregation]} of each ${steps.join(" or ")}${mixed}` };
  const points = parts.reduce((sum, part) => sum + (part.points ?? 0), 0);
  // The server counts points before it filters them.
  const of = points > 0 && !isPartial(view.plan) ? ` of ${plural(points, "point")}` : "";
  return { drawn, how: `, averaged by ${steps.join(" or ")}${of}${mixed}; the band is min to max` };
}

/** Parts of booleans that are asked for by themselves, and all others. */
function byShares({ plan, parts }: View): { shares: Part[]; others: Part[] } {
  const isShare = (_: Part, index: number) => plan.buckets[index]?.shares === true;
  return { shares: parts.filter(isShare), others: parts.filter((part, index) => !isShare(part, index)) };
}

/** What the view leaves out or puts otherwise than its reader may think. */
export function remarksOf(view: View, fields: FieldRef[], sources: ReadonlyMap<string, Source>): string[] {
  const { plan, parts } = view;
  const remarks: string[] = [];
  if (plan.leftOut.length > 0) {
    if (isMerged(plan) || isSplit(plan)) {
      const what = isSplit(plan) ? "Groups by dimensions" : "Sources together";
      remarks.push(`${what} have lines of numbers only; ${plan.leftOut.join(", ")} is left out.`);
    } else
      remarks.push(
        `Grouping by name works for numbers only: show ${plan.leftOut.join(", ")} with automatic grouping or as raw points.`,
      );
  }
  if (plan.unmatched.length > 0) {
    remarks.push(`${plan.unmatched.join(", ")}: no point can match, since a field or a dimension of the filter is missing there.`);
  }
  if (plan.refinement.merged && !isMerged(plan)) {
    remarks.push("Raw points are of one source each: choose another grouping to have sources together.");
  }
  const { conditions } = plan.dimensions;
  if (conditions.length > 0) remarks.push(`Only series where ${conditions.map(conditionInWords).join(" and ")}.`);
  if (isSplit(plan)) remarks.push(...remarksOfGroups(view));
  else if (plan.dimensions.groups.length > 0)
    remarks.push("Raw points are in no groups: choose another grouping for a line for each value of a dimension.");
  const { shares } = byShares(view);
  const steps = [...new Set(shares.flatMap((part) => part.groupBy ?? []))].map((step) => stepName(step));
  if (steps.length > 0) {
    remarks.push(`Booleans are shown as the share of time they were true, per ${steps.join(" or ")}.`);
  } else if (shares.length > 0 && plan.kind === "grouped") {
    remarks.push("Booleans are shown as raw points: they cannot be aggregated by this grouping.");
  }
  const texts = fields.filter((ref) => sources.get(ref.sourceId)?.schema[ref.field]?.type === "string");
  if (plan.kind === "auto" && texts.length > 0) {
    remarks.push(`Text fields are in the table below: ${[...new Set(texts.map((ref) => ref.field))].join(", ")}.`);
  }
  if (parts.some((part) => part.truncated)) {
    remarks.push(`The range has more rows than one query returns: the newest ${formatCount(10_000)} are shown.`);
  }
  if (plan.coarsenedFrom !== null) {
    const shown = plan.groupBy ?? "coarser groups";
    remarks.push(
      `Grouped by ${plan.coarsenedFrom}, this range has more rows than one query returns; it is grouped by ${shown}.`,
    );
  }
  return remarks;
}

/** Which groups are lines, and that there may be more of them. */
function remarksOfGroups({ plan, parts }: View): string[] {
  const { groups, top, least } = plan.dimensions;
  const full = plan.buckets.filter(({ shares }, index) => !shares && (parts[index]?.tables.size ?? 0) >= top);
  if (full.length === 0) return [];
  const which = `the ${top} with the ${least ? "least" : "greatest"} ${plan.aggregation}`;
  const ranked = [...new Set(full.flatMap((bucket) => bucket.ranked ?? []))];
  const of = ranked.length === 0 ? "" : ` of ${ranked.join(", ")}`;
  return [
    `A line for each ${groups.join(", ")}: ${which}${of} over the range; others are left out. How many there are at most is set under “Dimensions”.`,
  ];
}
