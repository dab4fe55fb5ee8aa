import { expect, test } from "vitest";
import { durationOf, shortDuration } from "./duration";

test.each([
  ["90", 90],
  ["1.5", 1.5],
  ["90s", 90],
  ["5m", 300],
  ["5 min", 300],
  [" 1h 30m ", 5_400],
  ["1h30m", 5_400],
  ["2D", 172_800],
  ["1w", 604_800],
  ["0.5h", 1_800],
])("%s is %s s", (text, seconds) => expect(durationOf(text)).toBe(seconds));

test.each(["", "m", "5x", "5m x", "-5m", "5 months", "1e3", "5,5m", "5m 3"])("%j is no length", (text) =>
  expect(durationOf(text)).toBeNull(),
);

test.each([
  [60, "1m"],
  [90, "90s"],
  [300, "5m"],
  [5_400, "90m"],
  [7_200, "2h"],
  [172_800, "2d"],
  [0, "0s"],
  [1.5, "1.5s"],
])("%s s is written as %s", (seconds, text) => {
  expect(shortDuration(seconds)).toBe(text);
  expect(durationOf(text)).toBe(seconds);
});
