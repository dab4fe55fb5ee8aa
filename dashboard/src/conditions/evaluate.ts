/** The outcome of a rule's kind on the rows of a window, and of a rule on those of its inputs. Pure. */
import type { Outcome } from "../api/rules";
import type { Kind } from "../pages/rule-kinds";
import { absence, presenceOf } from "./absence";
import { change, courseOf } from "./change";
import { whole, type Parameters, type Row, type Window } from "./entry";
import { matching, tallyOf } from "./matching";
import { zscore } from "./zscore";

/** Rows oldest first; `lengthMs`: of the steps that they are groups of, 0 of points. */
export function evaluate(
  kind: Kind,
  parameters: Parameters,
  rows: readonly Row[],
  window: Window | null,
  lengthMs: number,
): Outcome {
  switch (kind) {
    case "threshold":
    case "range":
      return matching(parameters, whole(rows.flatMap(({ value }) => tallyOf(kind, parameters, value) ?? [])));
    case "change":
      return change(parameters, whole(rows.flatMap(({ value }) => courseOf(value) ?? [])));
    case "absence":
      return absence(parameters, whole(rows.flatMap(({ at, value }) => presenceOf(at, value, lengthMs) ?? [])), window);
    case "zscore":
      return zscore(parameters, whole(rows.flatMap(({ value }) => (typeof value === "number" ? value : []))));
  }
}

/** Met if `any` input is, or `all` are; inconclusive if one is and no other decides. */
export function combined(inputs: "any" | "all", outcomes: readonly Outcome[]): Outcome {
  const [decisive, otherwise] = inputs === "any" ? (["met", "not_met"] as const) : (["not_met", "met"] as const);
  if (outcomes.includes(decisive)) return decisive;
  return outcomes.length === 0 || outcomes.includes("inconclusive") ? "inconclusive" : otherwise;
}
