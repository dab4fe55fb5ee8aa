/** What a rule says, in words that are made from its parameters. Pure. */
import type { Rule } from "../api/rules";
import { formatSpan } from "../app/format";
import { conditionInWords } from "../explorer/dimension-words";
import { draftOf, sourceOf, typeOf, type InputDraft, type KnownSource, type RuleDraft } from "./rule-draft";
import { rowName, unitOfRows } from "./rule-groups";
import { OPERATORS } from "./rule-kinds";

/** The condition of a draft in words. The server can parse those of a single field. */
export function wordsOf(draft: RuleDraft, sources: KnownSource[]): string {
  const { kind, condition, inputs } = draft;
  if (kind === null) return draft.text;
  const what = inputs.map((input) => subjectOf(draft, input, sources)).join(condition.inputs === "all" ? " and " : " or ");
  const first = inputs[0];
  const unit = first === undefined ? "" : (unitOfRows(first.grouping, unitOf(draft, first, sources)) ?? "");
  const amount = (text: string) => (unit === "" ? shown(text) : `${shown(text)} ${unit}`);
  switch (kind) {
    case "threshold": {
      const textual = first !== undefined && typeOf(draft, first, sources) === "string";
      const value = textual ? `"${condition.value}"` : amount(condition.value);
      return `${what} ${OPERATORS[condition.operator]?.words ?? "…"} ${value}${matchOf(draft)}`;
    }
    case "range": {
      const bounds = condition.inside
        ? `is between ${shown(condition.low)} and ${amount(condition.high)}`
        : `is outside ${shown(condition.low)} to ${amount(condition.high)}`;
      return `${what} ${bounds}${matchOf(draft)}`;
    }
    case "change": {
      const verb = { increase: "increases", decrease: "decreases" }[condition.direction] ?? "changes";
      // Of a field that is measured in percent, a share and a difference are told apart by words.
      const by = condition.percent
        ? `${shown(condition.by)} %`
        : unit === "%"
          ? `${shown(condition.by)} percentage points`
          : amount(condition.by);
      const from = { min: " from its least value", max: " from its greatest value" }[condition.from] ?? "";
      return `${what} ${verb} by ${by}${from}`;
    }
    case "absence": {
      const span = condition.maxGapSeconds.trim() === "" ? draft.windowSeconds : condition.maxGapSeconds;
      return `no ${what} for ${Number(span) > 0 ? formatSpan(Number(span)) : "…"}`;
    }
    case "zscore":
      return `${what} is more than ${shown(condition.limit)} standard deviations from its mean`;
  }
}

const shown = (text: string): string => (text.trim() === "" ? "…" : text.trim());

function subjectOf(draft: RuleDraft, input: InputDraft, sources: KnownSource[]): string {
  if (input.field === "") return "…";
  // A name that is not one word stands in quotes, as the server reads it.
  const field = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(input.field) ? input.field : `"${input.field}"`;
  const of = input.sourceId === "" ? "" : ` of ${sourceOf(draft, input, sources)?.name ?? input.sourceId}`;
  const grouped = input.grouping === "" ? "" : ` (${input.grouping.replace(" ", " by ")})`;
  const series = (input.conditions ?? []).map(conditionInWords).join(" and ");
  const each = input.grouping === "" ? "" : (input.groups ?? []).join(" and ");
  return field + of + grouped + (series === "" ? "" : ` where ${series}`) + (each === "" ? "" : ` for each ${each}`);
}

const unitOf = (draft: RuleDraft, input: InputDraft, sources: KnownSource[]): string | undefined =>
  sourceOf(draft, input, sources)?.schema[input.field]?.unit;

function matchOf({ condition: { match, minCount }, inputs }: RuleDraft): string {
  const row = rowName(inputs[0]?.grouping ?? "");
  if (match === "all") return `, every ${row}`;
  if (match === "last") return `, the newest ${row}`;
  return match === "count" ? `, at least ${shown(minCount)} ${row}s` : "";
}

/** Whether the parsed words of a stored rule differ from its evaluation block. */
export function wordsDisagree(rule: Rule): boolean {
  const { parsedCondition: parsed, evaluation } = rule;
  if (parsed === null || evaluation === null) return false;
  const { kind, condition, inputs } = draftOf(rule);
  if (kind === null) return false;
  if (!inputs.some((input) => input.field === parsed.field)) return true;
  const value = Array.isArray(parsed.value) ? parsed.value.map(String) : [String(parsed.value)];
  const same = (...evaluated: string[]) => evaluated.join(" ") === [parsed.operator, ...value].join(" ");
  switch (kind) {
    case "threshold":
      return !same(condition.operator, condition.value);
    case "range":
      return !same(condition.inside ? "between" : "outside", condition.low, condition.high);
    case "change":
      return !same(`${condition.direction}s_by`, condition.by) || (parsed.percent === true) !== condition.percent;
    default:
      return true;
  }
}
