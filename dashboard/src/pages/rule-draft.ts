/** A rule as the editor holds it, texts and all, and the request body that it makes. Pure. */
import type { Aggregation, GroupBy } from "../api/query";
import type { Evaluation, EvaluationInput, Parameter, Rule, RuleInput } from "../api/rules";
import type { Dimensions, FieldType, Schema } from "../api/sources";
import { matchersOf, readConditions, type DimensionCondition } from "../explorer/dimensions";
import { typeOfRows } from "./rule-groups";
import { conditionOf, emptyCondition, parametersOf, type Condition, type Kind } from "./rule-kinds";
import { wordsOf } from "./rule-words";

export interface InputDraft {
  key: string;
  field: string;
  /** Empty: same as the rule source. */
  sourceId: string;
  /** `avg hour`, or empty for points. */
  grouping: string;
  windowSeconds: string;
  /** Members that the form does not show, of a rule of another client. */
  kept: Pick<EvaluationInput, "fill" | "timezone" | "dimensions">;
  /** Which series it takes; absent: all. */
  conditions?: DimensionCondition[];
  /** The dimensions whose values have rows of their own; absent: all series are one. */
  groups?: string[];
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
  webhookUrl: string;
  /** A kind of the reference evaluator; null for another evaluator. */
  kind: Kind | null;
  /** What the kind says. */
  condition: Condition;
  /** Of an evaluator of one's own: its kind, what it is told, and the words. */
  ownKind: string;
  text: string;
  parameters: ParameterDraft[];
  intervalSeconds: string;
  windowSeconds: string;
  /** Empty: the window. */
  dwellSeconds: string;
  inputs: InputDraft[];
  /** Parameters of the stored rule that its kind does not have: saving leaves them out. */
  unknown: string[];
}

/** A source as the editor needs it. */
export interface KnownSource {
  _id: string;
  name: string;
  schema: Schema;
  dimensions?: Dimensions;
  /** How often it sends, where that is known. */
  stats?: { averageIntervalSeconds: number | null };
}

export const emptyInput = (field = "", key = "x"): InputDraft => ({
  key,
  field,
  sourceId: "",
  grouping: "",
  windowSeconds: "",
  kept: {},
});

export function newDraft(bucketId: string, sourceId: string): RuleDraft {
  return {
    bucketId,
    sourceId,
    name: "",
    webhookUrl: "",
    kind: "threshold",
    condition: emptyCondition(),
    ownKind: "",
    text: "",
    parameters: [],
    intervalSeconds: "60",
    windowSeconds: "300",
    dwellSeconds: "",
    inputs: [emptyInput()],
    unknown: [],
  };
}

export function draftOf(rule: Rule): RuleDraft {
  const draft = newDraft(rule.bucketId, rule.dataSourceId);
  const common = { ...draft, name: rule.name, text: rule.condition, webhookUrl: rule.webhookUrl ?? "" };
  const { evaluation } = rule;
  if (evaluation === null) return { ...common, ...draftEvaluation(rule) };
  const { known, unknown, condition } = conditionOf(evaluation);
  return {
    ...common,
    kind: known,
    condition,
    ownKind: known === null ? (evaluation.kind ?? "") : "",
    unknown,
    intervalSeconds: String(evaluation.intervalSeconds),
    windowSeconds: String(evaluation.windowSeconds),
    dwellSeconds: evaluation.dwellSeconds === undefined ? "" : String(evaluation.dwellSeconds),
    inputs: evaluation.inputs.map((input) => ({
      key: input.key,
      field: input.field,
      sourceId: input.dataSourceId ?? "",
      grouping: input.aggregation === undefined ? "" : `${input.aggregation} ${input.groupBy}`,
      windowSeconds: input.windowSeconds === undefined ? "" : String(input.windowSeconds),
      kept: keptOf(input),
      ...conditionsOf(input),
      ...groupsOf(input),
    })),
    parameters:
      known !== null
        ? []
        : Object.entries(evaluation.parameters).map(([name, value]) => ({
            name,
            type: typeof value as ParameterDraft["type"],
            value: String(value),
          })),
  };
}

/** A rule without an evaluation block, with the one that its condition would get. */
function draftEvaluation({ parsedCondition }: Rule): Partial<RuleDraft> {
  if (parsedCondition === null) return {};
  const { field, operator, value, percent } = parsedCondition;
  const inputs = [emptyInput(field)];
  const condition = emptyCondition();
  if (Array.isArray(value)) {
    const [low, high] = value.map(String);
    return {
      inputs,
      kind: "range",
      condition: { ...condition, low: low ?? "", high: high ?? "", inside: operator === "between" },
    };
  }
  if (operator === "increases_by" || operator === "decreases_by") {
    const direction = operator === "increases_by" ? "increase" : "decrease";
    return {
      inputs,
      kind: "change",
      condition: { ...condition, direction, by: String(value), percent: percent === true },
    };
  }
  return { inputs, kind: "threshold", condition: { ...condition, operator, value: String(value) } };
}

/** The source of an input. */
export function sourceOf(draft: RuleDraft, input: InputDraft, sources: KnownSource[]): KnownSource | undefined {
  const id = input.sourceId === "" ? draft.sourceId : input.sourceId;
  return sources.find((source) => source._id === id);
}

/** What the rows of an input hold; null while its field is not chosen. Counts are numbers whatever they count. */
export function typeOf(draft: RuleDraft, input: InputDraft, sources: KnownSource[]): FieldType | null {
  const type = sourceOf(draft, input, sources)?.schema[input.field]?.type ?? null;
  return type === null ? null : typeOfRows(input.grouping, type);
}

/** For a creation, or for a change of `rule`: only what may be changed, and a URL that was cleared as null. */
export function bodyOf(draft: RuleDraft, rule: Rule | null, sources: KnownSource[]): RuleInput {
  const url = draft.webhookUrl.trim();
  const body: RuleInput = {
    name: draft.name,
    // Words and parameters are one thing said twice, so one is made from the other.
    naturalLanguageQuery: wordsOf(draft, sources),
    evaluation: evaluationOf(draft, sources),
  };
  if (rule !== null) return { ...body, webhookUrl: url === "" ? null : url };
  const created = { ...body, bucketId: draft.bucketId, dataSourceId: draft.sourceId };
  return url === "" ? created : { ...created, webhookUrl: url };
}

function evaluationOf(draft: RuleDraft, sources: KnownSource[]): Evaluation {
  const type = typeOf(draft, draft.inputs[0] ?? emptyInput(), sources);
  const evaluation: Evaluation = {
    intervalSeconds: Number(draft.intervalSeconds),
    windowSeconds: Number(draft.windowSeconds),
    inputs: draft.inputs.map(inputOf),
    parameters: draft.kind === null ? ownParameters(draft) : parametersOf(draft.kind, draft.condition, type),
  };
  const kind = draft.kind ?? draft.ownKind.trim();
  if (kind !== "") evaluation.kind = kind;
  if (draft.dwellSeconds.trim() !== "") evaluation.dwellSeconds = Number(draft.dwellSeconds);
  return evaluation;
}

const keptOf = ({ fill, timezone, dimensions }: EvaluationInput): InputDraft["kept"] => ({
  ...(fill === undefined ? {} : { fill }),
  ...(timezone === undefined ? {} : { timezone }),
  ...(dimensions === undefined || readConditions(dimensions) !== null ? {} : { dimensions }),
});

const groupsOf = ({ groupByDimensions: groups }: EvaluationInput): Pick<InputDraft, "groups"> =>
  groups === undefined ? {} : { groups };

const conditionsOf = ({ dimensions = {} }: EvaluationInput): Pick<InputDraft, "conditions"> => {
  const conditions = readConditions(dimensions) ?? [];
  return conditions.length === 0 ? {} : { conditions };
};

function inputOf(draft: InputDraft): EvaluationInput {
  const { key, field, sourceId, grouping, windowSeconds, kept, conditions = [], groups = [] } = draft;
  const { fill, ...always } = kept;
  const input: EvaluationInput = { key, field, ...always };
  const [aggregation, groupBy] = grouping.split(" ");
  if (sourceId !== "") input.dataSourceId = sourceId;
  if (groupBy !== undefined) {
    Object.assign(input, { aggregation: aggregation as Aggregation, groupBy: groupBy as GroupBy });
    if (fill !== undefined) input.fill = fill;
    if (groups.length > 0) input.groupByDimensions = groups;
  }
  if (conditions.length > 0) input.dimensions = matchersOf(conditions);
  if (windowSeconds.trim() !== "") input.windowSeconds = Number(windowSeconds);
  return input;
}

function ownParameters(draft: RuleDraft): Record<string, Parameter> {
  const named = draft.parameters.filter(({ name }) => name.trim() !== "");
  return Object.fromEntries(named.map(({ name, type, value }) => [name.trim(), ownParameter(type, value)]));
}

function ownParameter(type: ParameterDraft["type"], value: string): Parameter {
  if (type === "boolean") return value === "true";
  return type === "number" ? Number(value) : value;
}
