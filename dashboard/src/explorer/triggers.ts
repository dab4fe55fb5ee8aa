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

/** Rules whose history is read. */
const RULES_MAX = 12;
const HISTORY_ROWS = 1000;

export async function fetchMarks(fields: FieldRef[], signal: AbortSignal): Promise<RuleMarks> {
  const sources = new Set(fields.map((ref) => ref.sourceId));
  const buckets = [...new Set(fields.map((ref) => ref.bucketId))];
  const lists = await Promise.all(buckets.map((bucketId) => listRules(bucketId, signal)));
  const rules = lists.flat().filter((rule) => watched(rule).some((id) => sources.has(id)));
  const fired = rules.filter((rule) => rule.lastTriggeredAt !== null).slice(0, RULES_MAX);
  const triggers = await Promise.all(fired.map((rule) => triggersOf(rule, signal)));
  const marks = triggers.flatMap((times, index) => times.map((at) => ({ at, rule: fired[index]! })));
  return { rules, marks: marks.sort((a, b) => a.at - b.at) };
}

/** By rule: when it had fired as of its latest trigger. Only a rule that has fired since is read again. */
const known = new Map<string, { latest: string | null; times: number[] }>();

export async function triggersOf(rule: Rule, signal: AbortSignal): Promise<number[]> {
  const held = known.get(rule._id);
  if (held !== undefined && held.latest === rule.lastTriggeredAt) return held.times;
  const { history } = await ruleHistory(rule._id, HISTORY_ROWS, 0, signal);
  const times = history.filter((entry) => entry.kind === "trigger").map((entry) => Date.parse(entry.at));
  known.set(rule._id, { latest: rule.lastTriggeredAt, times });
  return times;
}

export const marksWithin = (marks: Mark[], { from, to }: Span): Mark[] =>
  marks.filter(({ at }) => at >= from && at <= to);

function watched(rule: Rule): string[] {
  const inputs = rule.evaluation?.inputs.flatMap((input) => input.dataSourceId ?? []) ?? [];
  return [rule.dataSourceId, ...inputs];
}
