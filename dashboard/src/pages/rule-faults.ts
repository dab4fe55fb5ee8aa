/** What keeps a draft from being a rule that can fire, at the fields where it stands. Pure. */
import type { Fault } from "../api/client";
import { typeOf, type KnownSource, type RuleDraft } from "./rule-draft";
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
  const number = Number(text);
  if (!Number.isFinite(number)) return `must be a number such as 5.5, not ${text.trim()}`;
  if (whole && !Number.isInteger(number)) return "must be a whole number";
  if (above !== undefined && !(number > above)) return `must be greater than ${above}`;
  if (min !== undefined && max !== undefined && !(number >= min && number <= max))
    return `must be a number from ${min} to ${max}, not ${number}`;
  return min !== undefined && number < min ? `must be at least ${min}` : null;
}

const WINDOW: Bounds = { min: 60, max: 31_536_000 };

export function faultsOf(draft: RuleDraft, sources: KnownSource[]): Fault[] {
  const faults: Fault[] = [];
  const add = (path: string, message: string | null) => {
    if (message !== null) faults.push({ path: path.split("."), message });
  };
  if (draft.name.trim() === "") add("name", "must not be blank");
  if (draft.sourceId === "") add("dataSourceId", "a rule watches a source: choose one");
  add("evaluation.intervalSeconds", numberFault(draft.intervalSeconds, { min: 60, max: 86_400 }));
  add("evaluation.windowSeconds", numberFault(draft.windowSeconds, WINDOW));
  add("evaluation.dwellSeconds", numberFault(draft.dwellSeconds, { min: 0, optional: true }));
  const types = draft.inputs.map((input) => typeOf(draft, input, sources));
  draft.inputs.forEach((input, index) => {
    const path = `evaluation.inputs.${index}`;
    add(`${path}.windowSeconds`, numberFault(input.windowSeconds, { ...WINDOW, optional: true }));
    const type = types[index];
    if (input.field === "") add(`${path}.field`, "choose a field");
    else if (
      draft.kind !== null &&
      type !== null &&
      type !== undefined &&
      !(KINDS[draft.kind].types as readonly string[]).includes(type)
    )
      add(`${path}.field`, `a ${type} cannot be judged so: choose a number`);
    else if (draft.kind === "threshold" && type !== types[0])
      add(
        `${path}.field`,
        `the inputs of a rule are compared with one value: this is a ${type}, the first a ${types[0]}`,
      );
  });
  if (draft.kind === null) ownFaults(draft, add);
  else conditionFaults(draft, types[0] ?? null, add);
  return faults;
}

type Add = (path: string, message: string | null) => void;

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
      at("maxGapSeconds", numberFault(condition.maxGapSeconds, { above: 0, optional: true }));
      // What came before the window is not seen: a gap longer than it would never be known for sure.
      if (Number(condition.maxGapSeconds) > Number(draft.windowSeconds))
        add("evaluation.windowSeconds", `must be at least as long as the silence of ${condition.maxGapSeconds} s`);
      return;
    case "zscore":
      at("limit", numberFault(condition.limit, { above: 0 }));
      at("minPoints", numberFault(condition.minPoints, { min: 2, whole: true }));
  }
}
