/**
 * What the reference evaluator (`evaluator/src/condition`) understands: its kinds, and their parameters as the editor holds
 * them. Pure.
 */
import type { Evaluation, Parameter } from "../api/rules";
import type { FieldType } from "../api/sources";

export const KINDS = {
  threshold: { label: "Threshold", hint: "A field is compared with a value", types: ["number", "boolean", "string"] },
  range: { label: "Range", hint: "A number leaves a range, or enters it", types: ["number"] },
  change: { label: "Change", hint: "A number has risen or fallen within the window", types: ["number"] },
  absence: { label: "No data", hint: "A field has had no value for too long", types: ["number", "boolean", "string"] },
  zscore: { label: "Outlier", hint: "The newest number is far from the mean of the numbers before it", types: ["number"] },
} as const satisfies Record<string, { label: string; hint: string; types: readonly FieldType[] }>;

export type Kind = keyof typeof KINDS;

export const isKind = (kind: string | undefined): kind is Kind => kind !== undefined && Object.hasOwn(KINDS, kind);

/** Signs and words of the operators; only numbers have an order. */
export const OPERATORS: Record<string, { sign: string; words: string; ordered: boolean }> = {
  gt: { sign: ">", words: "is above", ordered: true },
  gte: { sign: "≥", words: "is at least", ordered: true },
  lt: { sign: "<", words: "is below", ordered: true },
  lte: { sign: "≤", words: "is at most", ordered: true },
  eq: { sign: "=", words: "is", ordered: false },
  neq: { sign: "≠", words: "is not", ordered: false },
};

export const operatorsOf = (type: FieldType | null): string[] =>
  Object.keys(OPERATORS).filter((name) => type === null || type === "number" || !OPERATORS[name]!.ordered);

export const MATCHES = ["any", "all", "last", "count"];
export const DIRECTIONS = ["increase", "decrease", "any"];

/** Nothing lies above the greatest value or below the least. */
export const originsOf = (direction: string): string[] =>
  ["first", "min", "max"].filter(
    (from) => !(direction === "increase" && from === "max") && !(direction === "decrease" && from === "min"),
  );

/** Parameters of all kinds, as they are typed; each kind takes its own. */
export interface Condition {
  operator: string;
  value: string;
  low: string;
  high: string;
  inside: boolean;
  match: string;
  minCount: string;
  direction: string;
  by: string;
  percent: boolean;
  from: string;
  maxGapSeconds: string;
  limit: string;
  minPoints: string;
  /** Of several inputs: whether `any` or `all` must be met. */
  inputs: string;
}

export const emptyCondition = (): Condition => ({
  operator: "gt",
  value: "",
  low: "",
  high: "",
  inside: false,
  match: "any",
  minCount: "",
  direction: "increase",
  by: "",
  percent: false,
  from: "first",
  maxGapSeconds: "300",
  limit: "3",
  minPoints: "30",
  inputs: "any",
});

const NAMES: Record<Kind, (keyof Condition)[]> = {
  threshold: ["operator", "value", "match", "minCount", "inputs"],
  range: ["low", "high", "inside", "match", "minCount", "inputs"],
  change: ["direction", "by", "percent", "from", "inputs"],
  absence: ["maxGapSeconds", "inputs"],
  zscore: ["limit", "minPoints", "inputs"],
};

/** What may be left out, and what that means; the rest must be given. */
const WHEN_ABSENT: Partial<Record<keyof Condition, string | boolean>> = {
  inside: false,
  match: "any",
  minCount: "",
  percent: false,
  from: "first",
  maxGapSeconds: "",
  limit: "3",
  minPoints: "30",
  inputs: "any",
};

interface Read {
  known: Kind | null;
  condition: Condition;
  unknown: string[];
}

/** What a stored block says, and which of its parameters its kind does not have. */
export function conditionOf({ kind, parameters }: Evaluation): Read {
  const condition = emptyCondition();
  if (!isKind(kind)) return { known: null, condition, unknown: [] };
  const given = condition as unknown as Record<string, string | boolean>;
  for (const name of NAMES[kind]) {
    const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    const absent = WHEN_ABSENT[name] ?? "";
    if (typeof absent === "boolean") given[name] = value === undefined ? absent : value === true;
    else given[name] = value === undefined ? absent : String(value);
  }
  return {
    known: kind,
    condition,
    unknown: Object.keys(parameters).filter((name) => !NAMES[kind].includes(name as never)),
  };
}

/** The parameters of a kind, without those that equal the default; `type` is the type of the evaluated rows. */
export function parametersOf(kind: Kind, condition: Condition, type: FieldType | null): Record<string, Parameter> {
  const parameters: Record<string, Parameter> = {};
  for (const name of NAMES[kind]) {
    const value = condition[name];
    if (name === "minCount" && condition.match !== "count") continue;
    if (value === WHEN_ABSENT[name] && name !== "limit" && name !== "minPoints") continue;
    parameters[name] = typeof value === "boolean" ? value : parameterOf(name, value, type);
  }
  return parameters;
}

const WORDS = new Set<keyof Condition>(["operator", "match", "direction", "from", "inputs"]);

function parameterOf(name: keyof Condition, text: string, type: FieldType | null): Parameter {
  if (WORDS.has(name)) return text;
  if (name === "value" && type === "string") return text;
  if (name === "value" && type === "boolean") return text === "true";
  return Number(text);
}
