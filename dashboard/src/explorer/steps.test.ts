import { expect, test } from "vitest";
import { stepEnd, stepName, stepTime } from "./steps";

test.each([
  ["5s", "5 s"],
  ["15m", "15 min"],
  ["hour", "hour"],
  ["day", "day"],
] as const)("%s is called %s", (step, name) => expect(stepName(step)).toBe(name));

test("a month ends where the next one begins", () => {
  expect(stepEnd(Date.UTC(2026, 0), "month", "utc")).toBe(Date.UTC(2026, 1));
  expect(stepEnd(Date.UTC(2026, 11), "month", "utc")).toBe(Date.UTC(2027, 0));
});

test("a local day ends at the next local midnight", () => {
  const midnight = new Date(2026, 2, 28).getTime();
  for (const [step, end] of [
    ["day", new Date(2026, 2, 29)],
    ["week", new Date(2026, 3, 4)],
    ["month", new Date(2026, 3, 28)],
  ] as const) {
    expect(stepEnd(midnight, step, "local")).toBe(end.getTime());
  }
});

test("a day has no time of day", () => {
  const start = Date.UTC(2026, 2, 2);
  expect(stepTime(start, "week", "utc")).toBe("week of 2026-03-02");
  expect(stepTime(start, "month", "utc")).toBe("2026-03");
  expect(stepTime(start, "hour", "utc")).toBe("2026-03-02 00:00:00");
  expect(stepTime(new Date(2026, 2, 2).getTime(), "day", "local")).toBe("2026-03-02");
});
