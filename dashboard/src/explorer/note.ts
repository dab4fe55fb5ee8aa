/** What is drawn, in a sentence under the chart, and what is left out of it. Pure. */
import type { Aggregation } from "../api/query";
import type { Source } from "../api/sources";
import { formatCount, plural } from "../app/format";
import type { View } from "./fetch";
import { hasBand } from "./plan";
import { pointsOf, type Line } from "./series";
import type { FieldRef } from "./state";
import { stepName } from "./steps";

const WHAT: Record<Aggregation, string> = {
  avg: "the mean",
  sum: "the sum",
  min: "the least value",
  max: "the greatest value",
  count: "the number of points",
};

/** `720 values a line` and `, averaged by 5 s of 10,800 points; the band is min to max`. */
export function noteOf(view: View, lines: Line[]): { drawn: string; how: string } {
  const steps = [...new Set(view.parts.flatMap((part) => part.groupBy ?? []))].map((step) => stepName(step));
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
  if (!hasBand(view.plan)) return { drawn, how: `, ${WHAT[view.plan.aggregation]} of each ${steps.join(" or ")}` };
  const points = view.parts.reduce((sum, part) => sum + (part.points ?? 0), 0);
  const of = points > 0 ? ` of ${plural(points, "point")}` : "";
  const mixed = view.parts.some((part) => part.groupBy === null) ? ", others as they came" : "";
  return { drawn, how: `, averaged by ${steps.join(" or ")}${of}${mixed}; the band is min to max` };
}

/** What the view leaves out or puts otherwise than its reader may think. */
export function remarksOf(view: View, fields: FieldRef[], sources: ReadonlyMap<string, Source>): string[] {
  const { plan, parts } = view;
  const remarks: string[] = [];
  if (plan.leftOut.length > 0) {
    remarks.push(
      `Groups by name are of numbers: ${plan.leftOut.join(", ")} can be seen with automatic grouping, or by raw.`,
    );
  }
  const texts = fields.filter((ref) => sources.get(ref.sourceId)?.schema[ref.field]?.type === "string");
  if (plan.kind === "auto" && texts.length > 0) {
    remarks.push(`Texts are no lines: the table has ${[...new Set(texts.map((ref) => ref.field))].join(", ")}.`);
  }
  if (parts.some((part) => part.truncated)) {
    remarks.push(`The range holds more rows than one answer: the newest ${formatCount(10_000)} are shown.`);
  }
  if (plan.coarsenedFrom !== null) {
    const shown = plan.groupBy ?? "coarser groups";
    remarks.push(`By ${plan.coarsenedFrom} this range has more rows than one answer holds; it is shown by ${shown}.`);
  }
  return remarks;
}
