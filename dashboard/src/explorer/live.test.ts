import { expect, test } from "vitest";
import { liveCost, livePeriodMs } from "./live";

test.each([
  [null, 1, 1000],
  [null, 4, 4000],
  [10_000, 1, 36_000],
  [10_000, 4, 144_000],
  [1_000_000, 1, 1000],
  [1_000_000, 4, 4000],
])("a limit of %s with %s calls a round", (limit, calls, period) => {
  expect(livePeriodMs(limit, calls)).toBe(period);
  if (limit !== null) expect((3_600_000 / period) * calls).toBeLessThanOrEqual(limit * 0.01);
});

test("the cost is said", () => {
  expect(liveCost(10_000, 1)).toBe("Asks every 36 s: an hour of live costs 100 of the month's 10,000 calls.");
  expect(liveCost(null, 1)).toBe("Asks each second; your plan has no limit of calls.");
});
