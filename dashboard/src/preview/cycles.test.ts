import { describe, expect, test } from "vitest";
import { commonStep, cyclesOf, instantOf, trialRanges, TRIAL_RANGES, VERDICTS_MAX } from "./cycles";

const NOW = Date.parse("2026-03-04T05:06:07.891Z");

describe("cycles", () => {
  test("the longest range is the one whose cycles fit into a request", () => {
    // 7 days of minutes are 10,081.
    expect(trialRanges(60)[0]!.name).toBe("3 days");
    expect(trialRanges(61)[0]!.name).toBe("7 days");
    expect(trialRanges(86_400)[0]!.name).toBe("7 days");
    expect(trialRanges(20).map(({ name }) => name)).toEqual(["24 hours", "6 hours", "hour"]);
    for (const seconds of [60, 61, 100, 3_600]) {
      expect(cyclesOf(trialRanges(seconds)[0]!, seconds, NOW).count).toBeLessThanOrEqual(VERDICTS_MAX);
    }
  });

  test("cycles lie an interval apart, in the range, on the server's steps", () => {
    for (const seconds of [60, 61, 420, 3_600, 5_400, 86_400]) {
      const cycles = cyclesOf(TRIAL_RANGES[0], seconds, NOW);
      expect(cycles.last).toBeLessThanOrEqual(NOW);
      expect(NOW - cycles.last).toBeLessThan(seconds * 1000);
      expect(cycles.last - cycles.first).toBe((cycles.count - 1) * seconds * 1000);
      expect(cycles.last - cycles.first).toBeLessThanOrEqual(7 * 86_400_000);
      expect((cycles.last - Date.parse("1970-01-05T00:00:00Z")) % (seconds * 1000)).toBe(0);
      // Lengths that divide a day count from midnight.
      if (86_400 % seconds === 0) expect(cycles.last % (seconds * 1000)).toBe(0);
    }
  });

  test("a cycle is told as the last nanosecond before its end", () => {
    expect(instantOf(Date.parse("2026-03-04T05:06:00Z"))).toBe("2026-03-04T05:05:59.999999999Z");
  });

  test("the common step divides all lengths", () => {
    expect(commonStep([60, 180])).toBe(60);
    expect(commonStep([61, 97])).toBe(1);
    expect(commonStep([3_600, 5_400, 900])).toBe(900);
    expect(commonStep([300])).toBe(300);
  });
});
