import { describe, expect, test } from "vitest";
import {
  aggregationsOf,
  covers,
  rowName,
  stepFault,
  stepLength,
  typeOfRows,
  unitOfRows,
  usualLength,
} from "./rule-groups";

describe("groups of an input", () => {
  test("each type has its aggregations", () => {
    expect(aggregationsOf("string")).toEqual(["count", "distinct", "first", "last"]);
    expect(aggregationsOf("boolean")).toContain("trueShare");
    expect(aggregationsOf("number")).not.toContain("trueShare");
    expect(covers("p90", "number")).toBe(true);
    expect(covers("p90", "string")).toBe(false);
    expect(covers("avg", "boolean")).toBe(false);
  });

  test("counts are numbers without a unit", () => {
    expect(typeOfRows("count hour", "string")).toBe("number");
    expect(typeOfRows("trueShare hour", "boolean")).toBe("number");
    expect(typeOfRows("last hour", "string")).toBe("string");
    expect(typeOfRows("", "boolean")).toBe("boolean");
    expect(unitOfRows("distinct hour", "m")).toBeUndefined();
    expect(unitOfRows("rate hour", "m")).toBe("m/s");
    expect(unitOfRows("avg hour", "m")).toBe("m");
  });

  test("steps are names or lengths", () => {
    expect(["minute", "hour", "day", "week", "90s", "15m", "2w"].map(stepLength)).toEqual([
      60, 3_600, 86_400, 604_800, 90, 900, 1_209_600,
    ]);
    expect(["month", "quarter", "all", "0m", "015m", "m", "constructor"].map(stepLength)).toEqual(Array(7).fill(null));
    for (const step of ["15m", "month", "all", "52w"]) expect(stepFault(step)).toBeNull();
    expect(stepFault("")).toMatch(/^write a step/);
    for (const step of ["x", "15", "1.5h", "53w", "365d"]) expect(stepFault(step)).toMatch(/^must be/);
    expect(usualLength("quarter")).toBe(91 * 86_400);
    expect(usualLength("x")).toBeNaN();
  });

  test("rows have names", () => {
    expect(["", "avg hour", "avg 15m", "avg month", "avg all"].map(rowName)).toEqual([
      "point",
      "hour",
      "group",
      "month",
      "group",
    ]);
  });
});
