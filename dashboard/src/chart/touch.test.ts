import { expect, test } from "vitest";
import { spanUnder } from "./touch";

const SPAN = { from: 1000, to: 2000 };

test("one finger moves the span with it", () => {
  expect(spanUnder([1500], [50], 100, SPAN)).toEqual({ from: 1000, to: 2000 });
  expect(spanUnder([1500], [20], 100, SPAN)).toEqual({ from: 1300, to: 2300 });
});

test("two fingers keep their moments", () => {
  expect(spanUnder([1400, 1600], [20, 80], 100, SPAN).from).toBeCloseTo(1333.33, 1);
  expect(spanUnder([1200, 1800], [40, 60], 100, SPAN)).toEqual({ from: 0, to: 3000 });
});

test("fingers that cross or meet do not turn the time round", () => {
  for (const places of [
    [60, 40],
    [50, 50],
  ]) {
    const { from, to } = spanUnder([1400, 1600], places, 100, SPAN);
    expect(to - from).toBe(1000);
  }
});
