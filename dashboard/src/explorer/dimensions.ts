/**
 * What a view makes of dimensions: which series it takes, by which names it groups them, and how many groups it keeps.
 * Stands in the URL. Pure.
 */
import type { Matcher, Query } from "../api/query";
import type { Source } from "../api/sources";

/** What the value of a dimension must be. Several values: any of them, or none of them. */
export const DIMENSION_OPERATORS = ["is", "not", "absent", "present", "matches", "notMatches"] as const;
export type DimensionOperator = (typeof DIMENSION_OPERATORS)[number];

export interface DimensionCondition {
  name: string;
  operator: DimensionOperator;
  /** A regular expression alone where the operator takes one; none where it takes none. */
  values: string[];
}

export interface DimensionChoice {
  /** One for each name. */
  conditions: DimensionCondition[];
  /** A line for each combination of the values of these names. */
  groups: string[];
  /** Of each field, so many groups at most. */
  top: number;
  /** Those with the least values instead of the greatest. */
  least: boolean;
}

/** Lines that can be told apart by colour and dash. */
export const TOP_DEFAULT = 20;
/** More lines of a field than this hide each other. */
export const TOP_MAX = 100;
/** Of all fields of a view together. */
const LINES_MAX = 200;

/** How many groups each of so many fields has at most, so that all of them can be drawn. */
export const topOfEach = ({ top }: DimensionChoice, fields: number): number =>
  Math.max(1, Math.min(top, Math.floor(LINES_MAX / Math.max(1, fields))));

export const UNSPLIT: DimensionChoice = { conditions: [], groups: [], top: TOP_DEFAULT, least: false };

/** The server's own bound; of conditions, what a form can show. */
export const GROUPS_MAX = 8;
export const CONDITIONS_MAX = 16;
/** The server's own bound. */
const VALUES_MAX = 1_000;

/** How many things differ from a view of all series together. */
export const countOfChoice = ({ conditions, groups }: DimensionChoice): number =>
  conditions.length + (groups.length > 0 ? 1 : 0);

/** What an operator takes. */
export const operandOf = (operator: DimensionOperator): "values" | "pattern" | "nothing" => {
  if (operator === "is" || operator === "not") return "values";
  return operator === "absent" || operator === "present" ? "nothing" : "pattern";
};

/** Whether a condition says something. */
export function isComplete({ name, operator, values }: DimensionCondition): boolean {
  if (name === "" || values.length > VALUES_MAX) return false;
  const operand = operandOf(operator);
  if (operand === "nothing") return true;
  return operand === "pattern" ? values.length === 1 && values[0] !== "" : values.length > 0;
}

/** `dim`, a JSON array each; `group`, a name each; `top` and `least`. What cannot be read is left out. */
export function readChoice(search: URLSearchParams): DimensionChoice {
  const conditions = new Map<string, DimensionCondition>();
  for (const text of search.getAll("dim")) {
    const condition = readCondition(text);
    if (condition !== null && isComplete(condition)) conditions.set(condition.name, condition);
  }
  const groups = [...new Set(search.getAll("group"))].filter((name) => name !== "");
  const top = Number(search.get("top") ?? TOP_DEFAULT);
  return {
    conditions: [...conditions.values()].slice(0, CONDITIONS_MAX),
    groups: groups.slice(0, GROUPS_MAX),
    top: Number.isInteger(top) && top >= 1 && top <= TOP_MAX ? top : TOP_DEFAULT,
    least: search.get("least") === "1",
  };
}

function readCondition(text: string): DimensionCondition | null {
  try {
    const parts: unknown = JSON.parse(text);
    if (!Array.isArray(parts) || !parts.every((part) => typeof part === "string")) return null;
    const [name = "", word, ...values] = parts as string[];
    const operator = DIMENSION_OPERATORS.find((one) => one === word);
    return operator === undefined ? null : { name, operator, values };
  } catch {
    return null;
  }
}

export function writeChoice({ conditions, groups, top, least }: DimensionChoice, search: URLSearchParams): void {
  for (const { name, operator, values } of conditions) search.append("dim", JSON.stringify([name, operator, ...values]));
  for (const name of groups) search.append("group", name);
  if (groups.length === 0) return;
  if (top !== TOP_DEFAULT) search.set("top", String(top));
  if (least) search.set("least", "1");
}

/** A condition in the query's words. */
export function matcherOf({ operator, values }: DimensionCondition): Matcher {
  const some = values.length === 1 ? values[0]! : values;
  switch (operator) {
    case "is":
      return some;
    case "not":
      return { not: some };
    case "absent":
      return null;
    case "present":
      return { not: null };
    case "matches":
      return { matches: values[0] ?? "" };
    case "notMatches":
      return { notMatches: values[0] ?? "" };
  }
}

/** The same back; null for one that says more than a condition can. */
export function conditionOf(name: string, matcher: unknown): DimensionCondition | null {
  const textsOf = (value: unknown): string[] | null => {
    const all: unknown[] = Array.isArray(value) ? value : [value];
    return all.length > 0 && all.every((one) => typeof one === "string") ? (all as string[]) : null;
  };
  if (matcher === null) return { name, operator: "absent", values: [] };
  if (typeof matcher !== "object" || Array.isArray(matcher)) {
    const values = textsOf(matcher);
    return values === null ? null : { name, operator: "is", values };
  }
  const [[operator, operand] = ["", undefined], ...others] = Object.entries(matcher as object);
  if (others.length > 0) return null;
  if (operator === "not" && operand === null) return { name, operator: "present", values: [] };
  if (operator !== "not" && operator !== "matches" && operator !== "notMatches") return null;
  const values = textsOf(operand);
  if (values === null || (operator !== "not" && Array.isArray(operand))) return null;
  return { name, operator, values };
}

/** Conditions as the member of a query. */
export const matchersOf = (conditions: DimensionCondition[]): Record<string, Matcher> =>
  Object.fromEntries(conditions.map((one) => [one.name, matcherOf(one)]));

/** The same back; null where one of them says more than a condition can. */
export function readConditions(matchers: object): DimensionCondition[] | null {
  const all = Object.entries(matchers).map(([name, matcher]) => conditionOf(name, matcher));
  return all.every((one) => one !== null) ? all : null;
}

/** Whether a series without the dimension meets the condition. */
export const takesAbsent = ({ operator }: DimensionCondition): boolean =>
  operator === "absent" || operator === "not" || operator === "notMatches";

/** Names of dimensions by source; a source that is not in it may have any. */
export type DimensionNames = ReadonlyMap<string, ReadonlySet<string>>;

/** Of sources that have those of their points, what the server has found; of the others, what they say themselves. */
export function namesOf(sources: Iterable<Source>, found: ReadonlyMap<string, string[]>): DimensionNames {
  const names = new Map<string, ReadonlySet<string>>();
  for (const { _id, dimensions } of sources) {
    if (dimensions !== "all") names.set(_id, new Set(dimensions));
    else if (found.has(_id)) names.set(_id, new Set(found.get(_id)));
  }
  return names;
}

/** Whether one of the sources may have the dimension. */
export const isKnown = (names: DimensionNames, sourceIds: string[], name: string): boolean =>
  sourceIds.some((id) => names.get(id)?.has(name) ?? true);

/** Whether some series of a source may meet all conditions. */
export const canHold = ({ conditions }: DimensionChoice, names: DimensionNames, sourceId: string): boolean =>
  conditions.every((one) => takesAbsent(one) || isKnown(names, [sourceId], one.name));

/** The members that say the same in a query of these sources: of a name that none of them has, all is absent. */
export function dimensionFilters(
  { conditions }: DimensionChoice,
  names: DimensionNames,
  sourceIds: string[],
): Partial<Query["filters"]> {
  const known = conditions.filter(({ name }) => isKnown(names, sourceIds, name));
  if (known.length === 0) return {};
  return { dimensions: matchersOf(known) };
}
