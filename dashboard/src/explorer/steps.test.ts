import { expect, test } from "vitest";
import { stepEnd, stepName, stepTime } from "./steps";

test.each([
  ["5s", "utc", "5 s"],
  ["15m", "local", "15 min"],
  ["hour", "local", "hour"],
  ["day", "utc", "day"],
  ["day", "local", "UTC day"],
] as const)("%s in %s is called %s", (step, zone, name) => expect(stepName(step, zone)).toBe(name));

test("a month ends where the next one begins", () => {
  expect(stepEnd(Date.UTC(2026, 0), "month")).toBe(Date.UTC(2026, 1));
  expect(stepEnd(Date.UTC(2026, 11), "month")).toBe(Date.UTC(2027, 0));
});

test("a day has no time of day", () => {
  const start = Date.UTC(2026, 2, 2);
  expect(stepTime(start, "day", "local")).toBe("2026-03-02 UTC");
  expect(stepTime(start, "week", "utc")).toBe("week of 2026-03-02");
  expect(stepTime(start, "month", "utc")).toBe("2026-03");
  expect(stepTime(start, "hour", "utc")).toBe("2026-03-02 00:00:00");
});
