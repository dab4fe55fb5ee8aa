import { expect, test } from "vitest";
import type { Source } from "../api/sources";
import { conditionInWords, labelsInWords } from "./dimension-words";
import {
  TOP_DEFAULT,
  UNSPLIT,
  canHold,
  conditionOf,
  countOfChoice,
  dimensionFilters,
  isComplete,
  matcherOf,
  namesOf,
  readChoice,
  writeChoice,
  type DimensionCondition,
} from "./dimensions";

const HOSTILE = `a,"b"&c=d [1] {"x":1} é`;
const CONDITIONS: DimensionCondition[] = [
  { name: "host", operator: "is", values: ["a"] },
  { name: HOSTILE, operator: "is", values: ["", HOSTILE] },
  { name: "cpu", operator: "not", values: ["cpu-total"] },
  { name: "rack", operator: "not", values: ["1", "2"] },
  { name: "zone", operator: "absent", values: [] },
  { name: "site", operator: "present", values: [] },
  { name: "line", operator: "matches", values: ["web-.*"] },
  { name: "__proto__", operator: "notMatches", values: ["x"] },
];

test("the address keeps what is chosen", () => {
  const choice = { conditions: CONDITIONS, groups: ["host", HOSTILE], top: 5, least: true };
  const search = new URLSearchParams();
  writeChoice(choice, search);
  expect(readChoice(new URLSearchParams(search.toString()))).toEqual(choice);
  const nothing = new URLSearchParams();
  writeChoice(UNSPLIT, nothing);
  expect(nothing.toString()).toBe("");
  expect(countOfChoice(choice)).toBe(CONDITIONS.length + 1);
});

test("what an address says wrong is left out", () => {
  const wrong = ['["host"]', '["host","is"]', '["","is","a"]', '["host","like","a"]', '["host","is",1]', "x", '["line","matches",""]'];
  const search = new URLSearchParams([...wrong.map((text) => ["dim", text]), ["group", ""], ["top", "0"]]);
  expect(readChoice(search)).toEqual(UNSPLIT);
  expect(readChoice(new URLSearchParams("top=101&group=a&group=a"))).toMatchObject({ top: TOP_DEFAULT, groups: ["a"] });
  expect(readChoice(new URLSearchParams(Array.from({ length: 9 }, (_, n) => ["group", `d${n}`]))).groups).toHaveLength(8);
});

test("a condition is a matcher of the query, and comes back from it", () => {
  const matchers = CONDITIONS.map(matcherOf);
  expect(matchers).toEqual([
    "a",
    ["", HOSTILE],
    { not: "cpu-total" },
    { not: ["1", "2"] },
    null,
    { not: null },
    { matches: "web-.*" },
    { notMatches: "x" },
  ]);
  expect(matchers.map((matcher, index) => conditionOf(CONDITIONS[index]!.name, matcher))).toEqual(CONDITIONS);
  for (const more of [["a", null], [], {}, { not: ["a", null] }, { not: "a", matches: "b" }, { like: "a" }, 5])
    expect(conditionOf("host", more)).toBeNull();
});

test("a condition without what its operator takes says nothing yet", () => {
  expect(CONDITIONS.every(isComplete)).toBe(true);
  for (const operator of ["is", "not", "matches", "notMatches"] as const)
    expect(isComplete({ name: "host", operator, values: [] })).toBe(false);
});

const source = (_id: string, dimensions: Source["dimensions"]) => ({ _id, dimensions }) as Source;

test("of a source without a dimension all is absent, and the server is not asked for a name that it does not know", () => {
  const sources = [source("none", null), source("named", ["host"]), source("all", "all"), source("empty", "all")];
  const names = namesOf(sources, new Map([["all", ["host", "cpu"]]]));
  const choice = (...conditions: DimensionCondition[]) => ({ ...UNSPLIT, conditions });
  const is = choice({ name: "cpu", operator: "is", values: ["0"] });
  const not = choice({ name: "cpu", operator: "not", values: ["0"] });
  expect(sources.map(({ _id }) => canHold(is, names, _id))).toEqual([false, false, true, true]);
  expect(sources.map(({ _id }) => canHold(not, names, _id))).toEqual([true, true, true, true]);
  expect(dimensionFilters(not, names, ["none", "named"])).toEqual({});
  expect(dimensionFilters(not, names, ["none", "all"])).toEqual({ dimensions: { cpu: { not: "0" } } });
  expect(dimensionFilters(not, names, ["unknown"])).toEqual({ dimensions: { cpu: { not: "0" } } });
});

test("groups and conditions in words", () => {
  expect(labelsInWords([["host", "a"], ["cpu", null], ["", ""]])).toBe("host=a, no cpu, =“”");
  expect(CONDITIONS.filter(({ name }) => name !== HOSTILE).map(conditionInWords)).toEqual([
    "host is a",
    "cpu is not cpu-total",
    "rack is not 1 or 2",
    "zone is absent",
    "site is present",
    "line matches web-.*",
    "__proto__ does not match x",
  ]);
});
