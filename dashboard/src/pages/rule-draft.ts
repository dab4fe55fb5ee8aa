/** A rule as the editor holds it, texts and all, and the request body that it makes. Pure. */
import type { Aggregation, GroupBy } from "../api/query";
import type { Evaluation, EvaluationInput, Parameter, Rule, RuleInput } from "../api/rules";

export interface InputDraft {
  key: string;
  field: string;
  /** Empty: the rule's own source. */
  sourceId: string;
  /** `avg hour`, or empty for points. */
  grouping: string;
  windowSeconds: string;
}

export interface ParameterDraft {
  name: string;
  type: "number" | "string" | "boolean";
  value: string;
}

export interface RuleDraft {
  bucketId: string;
  sourceId: string;
  name: string;
  text: string;
  webhookUrl: string;
  evaluated: boolean;
  kind: string;
  intervalSeconds: string;
  windowSeconds: string;
  /** Empty: the window. */
  dwellSeconds: string;
  inputs: InputDraft[];
  parameters: ParameterDraft[];
}

export const emptyInput = (field = "", key = "x"): InputDraft => ({
  key,
  field,
  sourceId: "",
  grouping: "",
  windowSeconds: "",
});

/** What the reference evaluator understands, with parameters to start from. */
export const KINDS: Record<string, { hint: string; parameters: ParameterDraft[] }> = {
  threshold: {
    hint: "rows compare with a value",
    parameters: [
      { name: "operator", type: "string", value: "gt" },
      { name: "value", type: "number", value: "" },
    ],
  },
  range: {
    hint: "rows lie outside of low to high",
    parameters: [
      { name: "low", type: "number", value: "" },
      { name: "high", type: "number", value: "" },
    ],
  },
  change: {
    hint: "the last value has moved by so much",
    parameters: [
      { name: "direction", type: "string", value: "any" },
      { name: "by", type: "number", value: "" },
    ],
  },
  absence: { hint: "nothing came for so long", parameters: [{ name: "maxGapSeconds", type: "number", value: "600" }] },
  zscore: {
    hint: "the newest value is unlike the others",
    parameters: [
      { name: "limit", type: "number", value: "3" },
      { name: "minPoints", type: "number", value: "30" },
    ],
  },
};

export function newDraft(bucketId: string, sourceId: string): RuleDraft {
  return {
    bucketId,
    sourceId,
    name: "",
    text: "",
    webhookUrl: "",
    evaluated: true,
    kind: "threshold",
    intervalSeconds: "60",
    windowSeconds: "300",
    dwellSeconds: "",
    inputs: [emptyInput()],
    parameters: KINDS["threshold"]!.parameters,
  };
}

export function draftOf(rule: Rule): RuleDraft {
  const draft = newDraft(rule.bucketId, rule.dataSourceId);
  const common = { ...draft, name: rule.name, text: rule.condition, webhookUrl: rule.webhookUrl ?? "" };
  const { evaluation } = rule;
  if (evaluation === null)
    return { ...common, evaluated: false, inputs: [emptyInput(rule.parsedCondition?.field ?? "")] };
  return {
    ...common,
    kind: evaluation.kind ?? "",
    intervalSeconds: String(evaluation.intervalSeconds),
    windowSeconds: String(evaluation.windowSeconds),
    dwellSeconds: evaluation.dwellSeconds === undefined ? "" : String(evaluation.dwellSeconds),
    inputs: evaluation.inputs.map((input) => ({
      key: input.key,
      field: input.field,
      sourceId: input.dataSourceId ?? "",
      grouping: input.aggregation === undefined ? "" : `${input.aggregation} ${input.groupBy}`,
      windowSeconds: input.windowSeconds === undefined ? "" : String(input.windowSeconds),
    })),
    parameters: Object.entries(evaluation.parameters).map(([name, value]) => ({
      name,
      type: typeof value as ParameterDraft["type"],
      value: String(value),
    })),
  };
}

/** For a creation, or for a change of `rule`: only what may be changed, and a URL that was cleared as null. */
export function bodyOf(draft: RuleDraft, rule: Rule | null): RuleInput {
  const url = draft.webhookUrl.trim();
  const common: RuleInput = { name: draft.name, naturalLanguageQuery: draft.text };
  if (rule === null) {
    Object.assign(common, { bucketId: draft.bucketId, dataSourceId: draft.sourceId });
    if (url !== "") common.webhookUrl = url;
    if (draft.evaluated) common.evaluation = evaluationOf(draft);
    return common;
  }
  common.webhookUrl = url === "" ? null : url;
  if (draft.evaluated) common.evaluation = evaluationOf(draft);
  else if (rule.evaluation !== null) common.evaluation = null;
  return common;
}

function evaluationOf(draft: RuleDraft): Evaluation {
  const evaluation: Evaluation = {
    intervalSeconds: numberOf(draft.intervalSeconds),
    windowSeconds: numberOf(draft.windowSeconds),
    inputs: draft.inputs.map(inputOf),
    parameters: Object.fromEntries(
      draft.parameters
        .filter(({ name }) => name.trim() !== "")
        .map((parameter) => [parameter.name.trim(), parameterOf(parameter)]),
    ),
  };
  if (draft.kind.trim() !== "") evaluation.kind = draft.kind.trim();
  if (draft.dwellSeconds.trim() !== "") evaluation.dwellSeconds = numberOf(draft.dwellSeconds);
  return evaluation;
}

function inputOf({ key, field, sourceId, grouping, windowSeconds }: InputDraft): EvaluationInput {
  const input: EvaluationInput = { key, field };
  const [aggregation, groupBy] = grouping.split(" ");
  if (sourceId !== "") input.dataSourceId = sourceId;
  if (groupBy !== undefined)
    Object.assign(input, { aggregation: aggregation as Aggregation, groupBy: groupBy as GroupBy });
  if (windowSeconds.trim() !== "") input.windowSeconds = numberOf(windowSeconds);
  return input;
}

/** What is no number goes to the server as it was typed: its message says what is wrong with it. */
function numberOf(text: string): number {
  const number = Number(text);
  return text.trim() !== "" && Number.isFinite(number) ? number : (text as unknown as number);
}

function parameterOf({ type, value }: ParameterDraft): Parameter {
  if (type === "boolean") return value === "true";
  return type === "number" ? numberOf(value) : value;
}
