import { describe, expect, test } from "vitest";
import { isNear, linesOf, rangeWith } from "./zones";

const above = (low: number) => [{ low, high: Infinity }];

describe("zones", () => {
  test("a zone has a line at each finite end, and each line once", () => {
    expect(linesOf(above(8))).toEqual([8]);
    expect(linesOf([{ low: 3, high: 3 }])).toEqual([3]);
    expect(linesOf([{ low: -Infinity, high: 2 }, { low: 5, high: Infinity }])).toEqual([2, 5]);
  });

  test("near lines are made room for, far ones are not", () => {
    expect(rangeWith(above(8), 1, 3)).toEqual([1, 8]);
    expect(rangeWith(above(-4), 1, 3)).toEqual([-4, 3]);
    expect(rangeWith(above(1000), 1, 3)).toEqual([1, 3]);
    expect(rangeWith(above(-1000), 1, 3)).toEqual([1, 3]);
    expect(rangeWith([], 1, 3)).toEqual([1, 3]);
  });

  test("without data the lines are what there is", () => {
    expect(rangeWith(above(1000), null, null)).toEqual([1000, 1000]);
    expect(rangeWith([], null, null)).toEqual([null, null]);
  });

  test("a flat line has room about its own size", () => {
    expect(isNear(49, 10, 10)).toBe(true);
    expect(isNear(51, 10, 10)).toBe(false);
    expect(isNear(4, 0, 0)).toBe(true);
  });
});
