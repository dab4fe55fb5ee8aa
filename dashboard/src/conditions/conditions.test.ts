/** The kinds on the vectors that the evaluator is held to as well. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Value } from "../api/query";
import type { Outcome } from "../api/rules";
import { KINDS, type Kind } from "../pages/rule-kinds";
import type { Parameters } from "./entry";
import { combined, evaluate } from "./evaluate";

interface Vector {
  name: string;
  kind: Kind;
  parameters: Parameters;
  query: { filters?: { startTime: string; endTime: string }; groupBy?: string };
  field: string;
  rows: { timestamp: string; values: Record<string, Value> }[];
  outcome: Outcome;
}

interface Combination {
  outcomes: Outcome[];
  any: Outcome;
  all: Outcome;
}

const FILE = new URL("../../../tests/data/conditions.json", import.meta.url);
const { vectors, combinations } = JSON.parse(readFileSync(FILE, "utf8")) as {
  vectors: Vector[];
  combinations: Combination[];
};
const LENGTHS_MS: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

describe("conditions", () => {
  test("every kind has vectors of every outcome that it has", () => {
    for (const kind of Object.keys(KINDS)) {
      const outcomes = new Set(vectors.filter((vector) => vector.kind === kind).map(({ outcome }) => outcome));
      expect([...outcomes].sort(), kind).toEqual(["inconclusive", "met", "not_met"]);
    }
  });

  for (const [number, { name, kind, parameters, query, field, rows, outcome }] of vectors.entries()) {
    test(`${number} ${kind}: ${name}`, () => {
      const { filters, groupBy } = query;
      const window =
        filters === undefined ? null : { start: Date.parse(filters.startTime), end: Date.parse(filters.endTime) };
      const lengthMs = groupBy === undefined ? 0 : LENGTHS_MS[groupBy]!;
      const read = rows.map(({ timestamp, values }) => ({ at: Date.parse(timestamp), value: values[field] ?? null }));
      expect(evaluate(kind, parameters, read, window, lengthMs)).toBe(outcome);
    });
  }

  test("several inputs", () => {
    expect(combinations.length).toBeGreaterThan(5);
    for (const { outcomes, any, all } of combinations) {
      expect(combined("any", outcomes), outcomes.join()).toBe(any);
      expect(combined("all", outcomes), outcomes.join()).toBe(all);
    }
  });
});
