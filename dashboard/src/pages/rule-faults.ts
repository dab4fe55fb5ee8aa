/**
 * What keeps a draft from being a rule that can fire, at the fields where it stands, and what is doubtful about one
 * that may. Pure.
 */
import type { Fault } from "../api/client";
import { formatSpan, numberOf } from "../app/format";
import { isComplete } from "../explorer/dimensions";
import { sourceOf, typeOf, type InputDraft, type KnownSource, type RuleDraft } from "./rule-draft";
import { aggregationOf, covers, rowName as nameOf, stepFault, stepOf, usualLength } from "./rule-groups";
import { KINDS, OPERATORS, isKind, operatorsOf } from "./rule-kinds";

interface Bounds {
  min?: number;
  max?: number;
  /** Greater than this. */
  above?: number;
  whole?: boolean;
  optional?: boolean;
}

/** What is wrong with a text that should be a number; null when nothing is. */
export function numberFault(text: string, { min, max, above, whole, optional }: Bounds = {}): string | null {
  if (text.trim() === "") return optional ? null : "a number is needed here";
  const number = numberOf(text);
  if (number === null) return `must be a number such as 5.5, not ${text.trim()}`;
  if (whole && !Number.isInteger(number)) return "must be a whole number";
  if (above !== undefined && !(number > above)) return `must be greater than ${above}`;
  if (min !== undefined && max !== undefined && !(number >= min && number <= max))
    return `must be a number from ${min} to ${max}, not ${number}`;
  return min !== undefined && number < min ? `must be at least ${min}` : null;
}

/** What is wrong with a length of time, in seconds. */
export function durationFault(text: string, bounds: Bounds = {}): string | null {
  const { min, max } = bounds;
  const number = numberOf(text);
  if (text.trim() === "") return bounds.optional ? null : "a length is needed here, such as 5m";
  if (number === null) return `must be a length such as 90s, 5m or 2h, not ${text.trim()}`;
  if (min !== undefined && max !== undefined && !(number >= min && number <= max))
    return `must be from ${formatSpan(min)} to ${formatSpan(max)}, not ${formatSpan(number)}`;
  return numberFault(text, bounds);
}

const WINDOW: Bounds = { min: 60, max: 31_536_000 };

export function faultsOf(draft: RuleDraft, sources: KnownSource[]): Fault[] {
  const faults: Fault[] = [];
  const add = (path: string, message: string | null) => {
    if (message !== null) faults.push({ path: path.split("."), message });
  };
  if (draft.name.trim() === "") add("name", "must not be blank");
  if (draft.sourceId === "") add("dataSourceId", "a rule watches a source: choose one");
  add("evaluation.intervalSeconds", durationFault(draft.intervalSeconds, { min: 60, max: 86_400 }));
  add("evaluation.windowSeconds", durationFault(draft.windowSeconds, WINDOW));
  add("evaluation.dwellSeconds", durationFault(draft.dwellSeconds, { min: 0, optional: true }));
  const types = draft.inputs.map((input) => typeOf(draft, input, sources));
  draft.inputs.forEach((input, index) => {
    const path = `evaluation.inputs.${index}`;
    add(`${path}.windowSeconds`, durationFault(input.windowSeconds, { ...WINDOW, optional: true }));
    if (!(input.conditions ?? []).every(isComplete)) add(`${path}.dimensions`, "a condition on a dimension has no value");
    const type = types[index];
    if (input.grouping !== "") {
      add(`${path}.groupBy`, stepFault(stepOf(input.grouping)));
      const field = sourceOf(draft, input, sources)?.schema[input.field]?.type;
      const aggregation = aggregationOf(input.grouping);
      if (!covers(aggregation, field)) add(`${path}.aggregation`, `a ${field} has no ${aggregation}`);
    }
    if (input.field === "") add(`${path}.field`, "choose a field");
    else if (
      draft.kind !== null &&
      type !== null &&
      type !== undefined &&
      !(KINDS[draft.kind].types as readonly string[]).includes(type)
    )
      add(`${path}.field`, `a ${type} cannot be evaluated this way: choose a number`);
    else if (draft.kind === "threshold" && type !== types[0])
      add(
        `${path}.field`,
        `the inputs of a rule are compared with one value: this is a ${type}, the first a ${types[0]}`,
      );
  });
  if (draft.kind === null) ownFaults(draft, add);
  else conditionFaults(draft, types[0] ?? null, add);
  const needed = neededRows(draft);
  if (needed !== null && draft.inputs.every((input) => mostRows(draft, input, sources) < needed.rows))
    add(`evaluation.parameters.${needed.of}`, `the window never has so many ${rowName(draft)}s`);
  return faults;
}

type Add = (path: string, message: string | null) => void;

/** What a source sends on average over its life may be so many times less than what it sends today. */
const PACE_ERROR = 10;

/** What the user should know of a rule that can be saved. */
export function doubtsOf(draft: RuleDraft, sources: KnownSource[]): string[] {
  const doubts: string[] = [];
  const needed = neededRows(draft);
  const most = Math.max(...draft.inputs.map((input) => rowsOf(draft, input, sources)));
  if (needed !== null && most < needed.rows)
    doubts.push(
      `About ${most} ${rowName(draft)}s come in a window, and it needs ${needed.rows}: it will rarely fire.`,
    );
  const longest = Math.max(...draft.inputs.map((input) => windowOf(draft, input)));
  if (Number(draft.intervalSeconds) > longest)
    doubts.push(
      `It is evaluated every ${formatSpan(Number(draft.intervalSeconds))} and looks at the last ${formatSpan(longest)}: ` +
        "what lies between is never looked at.",
    );
  return doubts;
}

/** Rows that a window must have for the rule to fire, and which parameter says so. */
function neededRows({ kind, condition }: RuleDraft): { rows: number; of: string } | null {
  if (kind === "zscore") return { rows: Number(condition.minPoints) + 1, of: "minPoints" };
  const counts = (kind === "threshold" || kind === "range") && condition.match === "count";
  return counts ? { rows: Number(condition.minCount), of: "minCount" } : null;
}

const windowOf = (draft: RuleDraft, input: InputDraft): number =>
  Number(input.windowSeconds.trim() === "" ? draft.windowSeconds : input.windowSeconds);

/** Rows of an input in a window: groups at most, points about. */
function rowsOf(draft: RuleDraft, input: InputDraft, sources: KnownSource[]): number {
  if (input.grouping !== "") return Math.ceil(windowOf(draft, input) / usualLength(stepOf(input.grouping))) + 1;
  const pace = sourceOf(draft, input, sources)?.stats?.averageIntervalSeconds ?? null;
  return pace === null || !(pace > 0) ? Infinity : Math.ceil(windowOf(draft, input) / pace);
}

const mostRows = (draft: RuleDraft, input: InputDraft, sources: KnownSource[]): number =>
  rowsOf(draft, input, sources) * (input.grouping === "" ? PACE_ERROR : 1);

const rowName = ({ inputs }: RuleDraft): string => nameOf(inputs[0]?.grouping ?? "");

function ownFaults(draft: RuleDraft, add: Add): void {
  if (draft.text.trim() === "") add("naturalLanguageQuery", "must not be blank");
  if (draft.ownKind.trim() === "") add("evaluation.kind", "your evaluator picks its rules by it");
  if (isKind(draft.ownKind.trim())) add("evaluation.kind", "this kind is the reference evaluator's: choose it above");
  for (const { name, type, value } of draft.parameters) {
    if (type === "number" && name.trim() !== "") add(`evaluation.parameters.${name.trim()}`, numberFault(value));
  }
}

function conditionFaults(draft: RuleDraft, type: string | null, add: Add): void {
  const { kind, condition } = draft;
  const at = (name: string, message: string | null) => add(`evaluation.parameters.${name}`, message);
  if (kind === "threshold" || kind === "range") {
    if (condition.match === "count") at("minCount", numberFault(condition.minCount, { min: 1, whole: true }));
  }
  if (!["any", "all"].includes(condition.inputs)) at("inputs", "choose any or all");
  switch (kind) {
    case "threshold":
      if (OPERATORS[condition.operator] === undefined) at("operator", "choose how it is compared");
      else if (!operatorsOf(type as never).includes(condition.operator)) at("operator", "only numbers have an order");
      if (type === "string" && condition.value === "") at("value", "a text is needed here");
      if (type === "boolean" && !["true", "false"].includes(condition.value)) at("value", "choose true or false");
      if (type === "number" || type === null) at("value", numberFault(condition.value));
      return;
    case "range":
      at("low", numberFault(condition.low));
      at("high", numberFault(condition.high));
      if (Number(condition.low) > Number(condition.high)) at("high", "must not be below the low end");
      return;
    case "change":
      at("by", numberFault(condition.by, { above: 0 }));
      return;
    case "absence":
      at("maxGapSeconds", durationFault(condition.maxGapSeconds, { above: 0, optional: true }));
      // What came before the window is not seen: a gap longer than it would never be known for sure.
      draft.inputs.forEach((input, index) => {
        if (Number(condition.maxGapSeconds) <= windowOf(draft, input)) return;
        const own = input.windowSeconds.trim() !== "";
        add(
          own ? `evaluation.inputs.${index}.windowSeconds` : "evaluation.windowSeconds",
          `must be at least as long as the silence of ${formatSpan(Number(condition.maxGapSeconds))}`,
        );
      });
      return;
    case "zscore":
      at("limit", numberFault(condition.limit, { above: 0 }));
      at("minPoints", numberFault(condition.minPoints, { min: 2, whole: true }));
  }
}
