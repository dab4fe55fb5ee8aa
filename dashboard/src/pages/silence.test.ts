import { expect, test } from "vitest";
import type { Source } from "../api/sources";
import { bySilence, silentSince } from "./silence";

const NOW = Date.UTC(2026, 0, 2);

function source(
  name: string,
  secondsAgo: number | null,
  interval: number | null,
  status: Source["status"] = "active",
  expectedIntervalSeconds: number | null = null,
) {
  const at = secondsAgo === null ? null : new Date(NOW - secondsAgo * 1000).toISOString();
  return { name, status, expectedIntervalSeconds, stats: { lastDataPoint: at, averageIntervalSeconds: interval } } as Source;
}

test.each([
  ["a point each second, 59 s ago", source("a", 59, 1), false],
  ["a point each second, 61 s ago", source("a", 61, 1), true],
  ["a point each five minutes, 14 min ago", source("a", 840, 300), false],
  ["a point each five minutes, 36 min ago", source("a", 2160, 300), true],
  ["no point yet", source("a", null, null), false],
  ["one point, an hour ago", source("a", 3600, null), false],
  ["one point, two days ago", source("a", 2 * 86_400, null), true],
  ["inactive", source("a", 2160, 300, "inactive"), false],
  ["a point each second where one in 20 s is expected, 59 s ago", source("a", 59, 1, "active", 20), false],
  ["a point each hour where one in 20 s is expected, 61 s ago", source("a", 61, 3600, "active", 20), true],
  ["a point of the future", source("a", -60, 1), false],
])("%s", (_, given, silent) => expect(silentSince(given, NOW) !== null).toBe(silent));

test("silent ones stand first, the longest silent before the others", () => {
  const list = [
    source("sends", 1, 1),
    source("short", 100, 1),
    source("rests", 1, 1, "inactive"),
    source("long", 900, 1),
  ];
  expect(list.sort(bySilence(NOW)).map(({ name }) => name)).toEqual(["long", "short", "sends", "rests"]);
});
