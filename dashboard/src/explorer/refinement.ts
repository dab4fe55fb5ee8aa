/**
 * What a view makes of the points before it draws them: which of them it takes, what it computes of their values, and
 * whether several sources are one line. Stands in the URL. Pure.
 */
import type { Query, Value } from "../api/query";
import type { FieldType, Source } from "../api/sources";
import { numberOf } from "../app/format";
import type { Catalog } from "./catalog";

/** Operators of conditions on values, in the query's words. */
export const OPERATORS = ["gt", "gte", "lt", "lte", "eq", "neq"] as const;
export type Operator = (typeof OPERATORS)[number];

/** What a point's value must be; a point without the field does not match. */
export interface Condition {
  field: string;
  operator: Operator;
  value: NonNullable<Value>;
}

/** What a member of a point's metadata must be. */
export interface MetadataCondition {
  name: string;
  value: NonNullable<Value>;
}

/** A line of what the server computes of each row. */
export interface Expression {
  name: string;
  expression: string;
}

export interface Refinement {
  conditions: Condition[];
  metadata: MetadataCondition[];
  expressions: Expression[];
  /** All sources of a bucket are one line for each field. */
  merged: boolean;
}

export const UNREFINED: Refinement = { conditions: [], metadata: [], expressions: [], merged: false };

/** The server's own bound of expressions; of conditions, what a form can show. */
export const EXPRESSIONS_MAX = 8;
export const CONDITIONS_MAX = 16;

/** How many things differ from a view of the points as they are. */
export const countOf = ({ conditions, metadata, expressions, merged }: Refinement): number =>
  conditions.length + metadata.length + expressions.length + (merged ? 1 : 0);

/** Whether some points may be left out. */
export const isFiltered = ({ conditions, metadata }: Refinement): boolean => conditions.length + metadata.length > 0;

/** `where`, `meta` and `calc`, a JSON array each, and `merge=1`; what cannot be read is left out. */
export function readRefinement(search: URLSearchParams): Refinement {
  const of = (name: string, length: number) =>
    search.getAll(name).flatMap((text) => {
      const parts = parsed(text);
      return parts !== null && parts.length === length ? [parts] : [];
    });
  const conditions = of("where", 3).flatMap(([field, operator, value]): Condition[] => {
    const known = OPERATORS.find((one) => one === operator);
    return isName(field) && known !== undefined && isValue(value) ? [{ field, operator: known, value }] : [];
  });
  const metadata = of("meta", 2).flatMap(([name, value]): MetadataCondition[] =>
    isName(name) && isValue(value) ? [{ name, value }] : [],
  );
  const expressions = of("calc", 2).flatMap(([name, expression]): Expression[] =>
    isName(name) && isName(expression) ? [{ name, expression }] : [],
  );
  return {
    conditions: conditions.slice(0, CONDITIONS_MAX),
    metadata: metadata.slice(0, CONDITIONS_MAX),
    expressions: expressions
      .filter(({ name }, index) => expressions.findIndex((one) => one.name === name) === index)
      .slice(0, EXPRESSIONS_MAX),
    merged: search.get("merge") === "1",
  };
}

export function writeRefinement(refinement: Refinement, search: URLSearchParams): void {
  for (const { field, operator, value } of refinement.conditions)
    search.append("where", JSON.stringify([field, operator, value]));
  for (const { name, value } of refinement.metadata) search.append("meta", JSON.stringify([name, value]));
  for (const { name, expression } of refinement.expressions) search.append("calc", JSON.stringify([name, expression]));
  if (refinement.merged) search.set("merge", "1");
}

function parsed(text: string): unknown[] | null {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

const isName = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";
const isValue = (value: unknown): value is NonNullable<Value> => ["number", "string", "boolean"].includes(typeof value);

/** The members that say the same in a query; of the expressions, those that its sources have an operand of. */
export function membersOf(
  refinement: Refinement,
  fields: string[],
): { query: Partial<Query>; filters: Partial<Query["filters"]> } {
  const { conditions, metadata } = refinement;
  const values: NonNullable<Query["filters"]["values"]> = {};
  for (const { field, operator, value } of conditions) values[field] = { ...values[field], [operator]: value };
  const expressions = refinement.expressions.filter(({ name }) => fields.includes(name));
  return {
    query: expressions.length === 0 ? {} : { expressions },
    filters: {
      ...(conditions.length === 0 ? {} : { values }),
      ...(metadata.length === 0
        ? {}
        : { metadata: Object.fromEntries(metadata.map(({ name, value }) => [name, value])) }),
    },
  };
}

/** Fields that a query names: those that are not computed. An empty list would name all; it has operands instead. */
export function storedFields({ expressions }: Refinement, fields: string[]): string[] {
  const stored = fields.filter((field) => !expressions.some(({ name }) => name === field));
  if (stored.length > 0) return stored;
  const computed = expressions.filter(({ name }) => fields.includes(name));
  return [...new Set(computed.flatMap(({ expression }) => operandsOf(expression)))];
}

/** Whether a source has all fields that the conditions are about: without one, none of its points match. */
export const canMatch = ({ conditions }: Refinement, { schema }: Source): boolean =>
  conditions.every(({ field }) => schema[field] !== undefined);

const FUNCTIONS = ["min", "max", "abs", "round"];

/** The fields that an expression names, in the server's syntax: bare or in backquotes. */
export function operandsOf(expression: string): string[] {
  const names = new Set<string>();
  for (const [, quoted, bare, call] of expression.matchAll(/`((?:[^`]|``)+)`|(?<![\w.])([A-Za-z_]\w*)(\s*\()?/g)) {
    if (quoted !== undefined) names.add(quoted.replaceAll("``", "`"));
    else if (call === undefined || !FUNCTIONS.includes(bare!)) names.add(bare!);
  }
  return [...names];
}

/** The catalog with computed fields in the schemas of sources that have all they are computed of. */
export function withExpressions(catalog: Catalog, expressions: Expression[]): Catalog {
  if (expressions.length === 0) return catalog;
  const extended = (source: Source): Source => {
    const more = expressions.filter(
      ({ name, expression }) =>
        source.schema[name] === undefined &&
        operandsOf(expression).every((field) => source.schema[field] !== undefined),
    );
    if (more.length === 0) return source;
    const computed = more.map(({ name, expression }) => [name, { type: "number" as const, expression }]);
    return { ...source, schema: { ...source.schema, ...Object.fromEntries(computed) } };
  };
  const buckets = catalog.buckets.map(({ bucket, sources }) => ({ bucket, sources: sources.map(extended) }));
  return { buckets, byId: new Map([...catalog.byId].map(([id, source]) => [id, extended(source)])) };
}

/** A value as it is typed for a field of this type; null where it is none. */
export function valueOf(text: string, type: FieldType): NonNullable<Value> | null {
  if (type === "number") return numberOf(text);
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : null;
  return text === "" ? null : text;
}

/** Of metadata, which have no schema: numbers and `true` are themselves unless they stand in quotes. */
export function metadataValueOf(text: string): NonNullable<Value> | null {
  const typed = text.trim();
  if (typed === "") return null;
  if (typed === "true" || typed === "false") return typed === "true";
  const quoted = /^"(.*)"$/s.exec(typed);
  return quoted !== null ? quoted[1]! : (numberOf(typed) ?? typed);
}

/** The same back, as it would be typed. */
export const writtenMetadata = (value: NonNullable<Value>): string =>
  typeof value === "string" && metadataValueOf(value) !== value ? `"${value}"` : String(value);
