import { describe, expect, test } from "vitest";
import {
  formatAgo,
  formatBytes,
  formatCompact,
  formatMoment,
  formatSpan,
  formatTime,
  formatTimer,
  formatValue,
  sentence,
} from "./format";

test.each([
  [0, "0 B"],
  [1023, "1,023 B"],
  [1024, "1 KiB"],
  [91250, "89.1 KiB"],
  [1024 * 1024 - 1, "1 MiB"],
  [1.5 * 1024 ** 3, "1.5 GiB"],
  [3000 * 1024 ** 4, "3,000 TiB"],
])("%s bytes are %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));

test.each([
  [0, "0"],
  [21.5, "21.5"],
  [2.4339610062893082, "2.43396"],
  [-0.00012345678, "-0.000123457"],
  [1e-7, "1.000e-7"],
  [1234567.8, "1234567.8"],
  [1234567.89, "1234567.9"],
  [123456.78, "123456.8"],
  [99999.95, "99999.9"],
  [123456789, "123456789"],
  [123456789012, "123456789012"],
  [5e12, "5.000e+12"],
])("a value %s is %s", (value, text) => expect(formatValue(value)).toBe(text));

test.each([
  [[1234567.2, 1234567.4, 1234567.6], 0.2],
  [[123456.789, 123456.79, 123456.791], 0.001],
  [[5e14, 5.00001e14, 5.00002e14], 1e9],
  [[-2e-7, -1e-7, 0, 1e-7], 1e-7],
  [[1e300, 2e300], 1e300],
])("ticks of %s differ", (ticks, step) => {
  expect(new Set(ticks.map((tick) => formatValue(tick, step))).size).toBe(ticks.length);
});

test.each([
  [9999, "9,999"],
  [12_345, "12.3K"],
  [1_157_904, "1.2M"],
])("a count %s is %s", (value, text) => expect(formatCompact(value)).toBe(text));

test.each([
  [0, "0 s"],
  [0.25, "0.25 s"],
  [60, "1 min"],
  [90, "1 min 30 s"],
  [86_400, "1 d"],
  [187_200, "2 d 4 h"],
  [31_536_000, "1 y"],
])("a span of %s s is %s", (seconds, text) => expect(formatSpan(seconds)).toBe(text));

test.each([
  [-5, "00:00"],
  [0.2, "00:01"],
  [299, "04:59"],
  [3600, "1:00:00"],
])("a timer of %s s is %s", (seconds, text) => expect(formatTimer(seconds)).toBe(text));

describe("times", () => {
  test("ago and ahead", () => {
    expect(formatAgo(0, 3000)).toBe("just now");
    expect(formatAgo(0, 185_000)).toBe("3 min ago");
    expect(formatAgo(7_200_000, 0)).toBe("in 2 h");
  });

  test("UTC, with milliseconds when there are any", () => {
    expect(formatTime(Date.UTC(2026, 10, 21, 9, 5, 7), "utc")).toBe("2026-11-21 09:05:07");
    expect(formatTime(Date.UTC(2026, 10, 21, 9, 5, 7, 40), "utc")).toBe("2026-11-21 09:05:07.040");
    expect(formatTime(NaN, "utc")).toBe("–");
  });

  test("the day only where it is another", () => {
    const at = Date.UTC(2026, 10, 21, 9, 5, 7);
    expect(formatMoment(at, at + 3_600_000, "utc")).toBe("09:05");
    expect(formatMoment(at, at + 86_400_000, "utc")).toBe("2026-11-21 09:05");
  });
});

test("messages are sentences", () => {
  expect(sentence("must not be blank")).toBe("Must not be blank.");
  expect(sentence("is it?")).toBe("Is it?");
  expect(sentence("")).toBe("");
});
