import { expect, test } from "vitest";
import { clockOf, isKnownZone, momentAt, offsetMinutes } from "./clock";

const STOCKHOLM = "Europe/Stockholm";
const HOUR = 3_600_000;

test.each([
  [STOCKHOLM, Date.UTC(2026, 0, 31, 23, 30), [2026, 1, 1, 0, 30]],
  [STOCKHOLM, Date.UTC(2026, 5, 30, 22), [2026, 6, 1, 0, 0]],
  ["America/New_York", Date.UTC(2026, 0, 1, 3), [2025, 11, 31, 22, 0]],
  ["Asia/Kathmandu", Date.UTC(2026, 0, 1), [2026, 0, 1, 5, 45]],
  ["utc", Date.UTC(2026, 0, 1), [2026, 0, 1, 0, 0]],
])("the clock of %s at %s", (zone, at, [year, month, day, hour, minute]) => {
  expect(clockOf(at + 250, zone)).toEqual({ year, month, day, hour, minute, second: 0, ms: 250 });
  expect(momentAt(zone, { ...clockOf(at + 250, zone) })).toBe(at + 250);
});

test("an unknown zone is shown as UTC", () => {
  expect(isKnownZone("Mars/Olympus")).toBe(false);
  expect(isKnownZone(STOCKHOLM)).toBe(true);
  expect(clockOf(HOUR, "Mars/Olympus")).toEqual(clockOf(HOUR, "utc"));
});

test("offsets go by the moment", () => {
  expect(offsetMinutes(Date.UTC(2026, 0, 1), STOCKHOLM)).toBe(60);
  expect(offsetMinutes(Date.UTC(2026, 6, 1), STOCKHOLM)).toBe(120);
  expect(offsetMinutes(Date.UTC(2026, 0, 1), "America/St_Johns")).toBe(-210);
});

test("days of a change of clocks have 23 and 25 hours", () => {
  const midnight = (month: number, day: number) => momentAt(STOCKHOLM, { year: 2026, month, day });
  expect(midnight(2, 30) - midnight(2, 29)).toBe(23 * HOUR);
  expect(midnight(9, 26) - midnight(9, 25)).toBe(25 * HOUR);
});

test("of an hour that comes twice the first is meant, and one that is left out is behind the change", () => {
  expect(momentAt(STOCKHOLM, { year: 2026, month: 9, day: 25, hour: 2, minute: 30 })).toBe(
    Date.UTC(2026, 9, 25, 0, 30),
  );
  expect(momentAt(STOCKHOLM, { year: 2026, month: 2, day: 29, hour: 2, minute: 30 })).toBe(
    Date.UTC(2026, 2, 29, 1, 30),
  );
});

test("parts may go beyond their ranges", () => {
  const end = { year: 2026, month: 12, day: 1 };
  expect(momentAt(STOCKHOLM, end)).toBe(Date.UTC(2026, 11, 31, 23));
  expect(momentAt("utc", end)).toBe(Date.UTC(2027, 0, 1));
});
