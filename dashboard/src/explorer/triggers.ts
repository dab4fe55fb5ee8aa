/** When the rules of the sources on the chart have fired. */
import { listRules, ruleHistory, type Rule } from "../api/rules";
import type { Span } from "./range";
import type { FieldRef } from "./state";

export interface Mark {
  at: number;
  rule: Rule;
}

export interface RuleMarks {
  /** Rules that look at one of the sources. */
  rules: Rule[];
  /** Ascending. */
  marks: Mark[];
}

/** Rules whose history is read; each costs a call. */
const RULES_MAX = 12;
const HISTORY_ROWS = 1000;

export async function fetchMarks(fields: FieldRef[], signal: AbortSignal): Promise<RuleMarks> {
  const sources = new Set(fields.map((ref) => ref.sourceId));
  const buckets = [...new Set(fields.map((ref) => ref.bucketId))];
  const lists = await Promise.all(buckets.map((bucketId) => listRules(bucketId, signal)));
  const rules = lists.flat().filter((rule) => watched(rule).some((id) => sources.has(id)));
  const fired = rules.filter((rule) => rule.lastTriggeredAt !== null).slice(0, RULES_MAX);
  const histories = await Promise.all(fired.map((rule) => ruleHistory(rule._id, HISTORY_ROWS, 0, signal)));
  const marks = histories.flatMap((page, index) =>
    page.history
      .filter((entry) => entry.kind === "trigger")
      .map((entry) => ({ at: Date.parse(entry.at), rule: fired[index]! })),
  );
  return { rules, marks: marks.sort((a, b) => a.at - b.at) };
}

export const marksWithin = (marks: Mark[], { from, to }: Span): Mark[] =>
  marks.filter(({ at }) => at >= from && at <= to);

function watched(rule: Rule): string[] {
  const inputs = rule.evaluation?.inputs.flatMap((input) => input.dataSourceId ?? []) ?? [];
  return [rule.dataSourceId, ...inputs];
}
