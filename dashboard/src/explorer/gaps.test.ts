import { describe, expect, test } from "vitest";
import { groupGaps, pointGaps } from "./gaps";

const MINUTE = 60_000;
const gapsIn = (times: number[], isGap: (index: number) => boolean) =>
  times.flatMap((_, index) => (index > 0 && isGap(index) ? index : []));
/** Times of the groups, in minutes, that hold points of a source that sends each `seconds`. */
const groups = (seconds: number, minutes: number) => {
  const all = Array.from({ length: (minutes * 60) / seconds }, (_, index) => Math.floor((index * seconds) / 60));
  return [...new Set(all)].map((minute) => minute * MINUTE);
};

describe("groups", () => {
  test.each([1, 60, 70, 90, 300, 7200])("a source that sends each %s s has no gap between its minutes", (seconds) => {
    const times = groups(seconds, 2880);
    expect(gapsIn(times, groupGaps(times, MINUTE))).toEqual([]);
  });

  test("a missing group of a dense source is one, and a pause of a sparse one too", () => {
    const dense = [0, 1, 2, 3, 5, 6, 7].map((minute) => minute * MINUTE);
    expect(gapsIn(dense, groupGaps(dense, MINUTE))).toEqual([4]);
    const sparse = [0, 5, 10, 15, 60, 65, 70].map((minute) => minute * MINUTE);
    expect(gapsIn(sparse, groupGaps(sparse, MINUTE))).toEqual([4]);
  });
});

test("points of one time say nothing about what is usual", () => {
  const times = [0, 0, 5];
  expect(gapsIn(times, pointGaps(times))).toEqual([]);
});
