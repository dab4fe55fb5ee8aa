import { expect, test } from "vitest";
import type { BoardContent, PanelAnswer } from "../api/boards";
import { chartLines, seriesOf } from "./answer";
import { inOrder, moved, placeBelow, readingOrder, resized, widened, withPlace } from "./grid";
import { lengthSeconds, readBoardState, spanOfRange, substituted, writeBoardState } from "./state";
import { levelOf, ofMean, shown } from "./thresholds";

const place = (x: number, y: number, w: number, h: number) => ({ x, y, w, h });

test("a panel stays within the grid", () => {
  expect(moved(place(10, 0, 2, 1), 1, -1)).toEqual(place(10, 0, 2, 1));
  expect(moved(place(3, 4, 2, 1), -5, 2)).toEqual(place(0, 6, 2, 1));
  expect(resized(place(10, 0, 2, 1), 1, -1)).toEqual(place(10, 0, 2, 1));
  expect(resized(place(3, 4, 2, 100), -5, 2)).toEqual(place(3, 4, 1, 100));
});

test("a new panel stands beside the last one, or below", () => {
  expect(placeBelow([], 6, 4)).toEqual(place(0, 0, 6, 4));
  expect(placeBelow([place(0, 2, 6, 4)], 6, 4)).toEqual(place(6, 2, 6, 4));
  expect(placeBelow([place(0, 2, 7, 4)], 6, 4)).toEqual(place(0, 6, 6, 4));
  expect(placeBelow([place(0, 2, 6, 2), place(6, 0, 6, 3)], 6, 4)).toEqual(place(0, 4, 6, 4));
});

test("what a panel would cover moves down, and what that would cover", () => {
  const panels = [place(0, 0, 6, 4), place(6, 0, 6, 4), place(0, 4, 6, 4), place(0, 8, 12, 2)];
  const lower = withPlace(panels, 0, place(0, 2, 6, 4));
  expect(lower).toEqual([place(0, 2, 6, 4), place(6, 0, 6, 4), place(0, 6, 6, 4), place(0, 10, 12, 2)]);
  // What has room stays where it is, empty places too.
  expect(withPlace(lower, 0, place(0, 0, 6, 4))).toEqual([place(0, 0, 6, 4), ...lower.slice(1)]);
  const wide = withPlace(panels, 1, place(0, 0, 12, 4));
  expect(wide).toEqual([place(0, 4, 6, 4), place(0, 0, 12, 4), place(0, 8, 6, 4), place(0, 12, 12, 2)]);
  // The grid ends; panels are not moved beyond it.
  expect(withPlace([place(0, 999, 1, 5), place(1, 999, 1, 5)], 1, place(0, 999, 1, 5))[0]!.y).toBe(1000);
});

test("panels are put earlier and later in the order in which they are read", () => {
  const panels = [place(0, 0, 6, 4), place(6, 0, 6, 4), place(0, 4, 12, 3)];
  expect(inOrder(panels, 1, -1)).toEqual([place(6, 0, 6, 4), place(0, 0, 6, 4), place(0, 4, 12, 3)]);
  expect(inOrder(panels, 0, -1)).toEqual(panels);
  expect(inOrder(panels, 2, 1)).toEqual(panels);
  const placed = inOrder(panels, 2, -1);
  expect(placed).toEqual([place(0, 0, 6, 4), place(0, 7, 6, 4), place(0, 4, 12, 3)]);
  expect(readingOrder(placed)).toEqual([0, 2, 1]);
});

test("full width, and half of it", () => {
  expect(widened(place(3, 1, 4, 2))).toEqual(place(0, 1, 12, 2));
  expect(widened(place(0, 1, 12, 2))).toEqual(place(0, 1, 6, 2));
});

test("panels are read by rows", () => {
  expect(readingOrder([place(6, 0, 1, 1), place(0, 4, 1, 1), place(0, 0, 1, 1)])).toEqual([2, 0, 1]);
});

test("the URL says range, variables and wall", () => {
  const state = { range: "7d", values: new Map([["pump", "a b"]]), wall: true };
  expect(readBoardState(new URLSearchParams(writeBoardState(state)))).toEqual(state);
  const between = { startTime: "2026-01-01T00:00:00.000Z", endTime: "2026-01-02T00:00:00.000Z" };
  const fixed = { range: between, values: new Map<string, string>(), wall: false };
  expect(readBoardState(new URLSearchParams(writeBoardState(fixed)))).toEqual(fixed);
  expect(readBoardState(new URLSearchParams("r=53w&from=x")).range).toBeNull();
  expect(writeBoardState({ range: null, values: new Map(), wall: false })).toBe("");
  expect([lengthSeconds("52w"), lengthSeconds("53w"), lengthSeconds("01h"), lengthSeconds("hour")]).toEqual([
    31_449_600,
    null,
    null,
    null,
  ]);
  expect(spanOfRange("1h", 3_600_000)).toEqual({ from: 0, to: 3_600_000 });
});

test("variables stand for whole strings", () => {
  const board = {
    variables: [
      { name: "a", default: "x", values: null },
      { name: "b", default: null, values: ["y"] },
      { name: "c", default: null, values: null },
    ],
  } as unknown as BoardContent;
  const state = { range: null, values: new Map([["a", "z"]]), wall: false };
  expect(substituted({ bucketId: "$a", filters: { ids: ["$b", "$$b", "$d"] }, limit: 1 }, board, state)).toEqual({
    query: { bucketId: "z", filters: { ids: ["y", "$$b", "$d"] }, limit: 1 },
  });
  expect(substituted({ bucketId: "$c" }, board, state)).toEqual({ missing: "c" });
});

const at = (minute: number) => new Date(minute * 60_000).toISOString();

test("rows and columns give the same series", () => {
  const rows: PanelAnswer = {
    data: [
      { timestamp: at(2), dataSourceId: "s", values: { t: { avg: 2, min: 1, max: 3 } } },
      { timestamp: at(1), dataSourceId: "s", values: { t: { avg: 5, min: 4, max: 6 } } },
    ],
    metadata: { hasMore: false, groupBy: "minute" },
  };
  const columns: PanelAnswer = {
    columns: {
      timestamp: [at(1), at(2)],
      dataSourceId: ["s", "s"],
      values: { t: { avg: [5, 2], min: [4, 1], max: [6, 3] } },
    },
    metadata: { hasMore: false, groupBy: "minute" },
  };
  expect(seriesOf(rows)).toEqual(seriesOf(columns));
  const [line, ...others] = chartLines(rows, { source: () => "Pump", unit: "m" });
  expect(others).toEqual([]);
  expect(line).toMatchObject({ label: "Pump · t", values: [5, 2], lows: [4, 1], highs: [6, 3], type: "number" });
});

test("groups by dimensions are lines, named by what tells them apart, in rows and in columns", () => {
  const columns: PanelAnswer = {
    columns: {
      timestamp: [at(1), at(1)],
      dataSourceId: ["s", "s"],
      dimensions: { host: ["a", null] },
      values: { t: [1, 2] },
    },
    metadata: { hasMore: false, groupBy: "minute" },
  };
  const rows: PanelAnswer = {
    data: ["a", null].map((host, index) => ({
      ...{ timestamp: at(1), dataSourceId: "s", dimensions: { host }, values: { t: index + 1 } },
    })),
    metadata: { hasMore: false, groupBy: "minute" },
  };
  expect(seriesOf(rows)).toEqual(seriesOf(columns));
  const lines = chartLines(columns, { source: () => "Pump", unit: "" });
  expect(lines.map(({ label }) => label)).toEqual(["no host", "host=a"]);
  const kept = chartLines(rows, { source: () => "Pump", unit: "" }, new Map([[lines[1]!.id, 7]]));
  expect(kept[1]!.index).toBe(7);
});

test("merged rows have no source, and a pause is a gap", () => {
  const times = [0, 1, 2, 3, 4, 60, 61, 62];
  const answer: PanelAnswer = {
    columns: { timestamp: times.map(at), values: { on: times.map((minute) => minute > 2) } },
    metadata: { hasMore: false },
  };
  const [line] = chartLines(answer, { source: () => null, unit: "" });
  expect(line).toMatchObject({ label: "on", type: "boolean", step: null });
  expect(line!.values).toEqual([0, 0, 0, 1, 1, null, 1, 1, 1]);
});

test("a value has the level of the greatest threshold that it has reached", () => {
  const thresholds = [
    { value: 90, level: "critical" as const },
    { value: 50, level: "warning" as const },
  ];
  expect([49, 50, 89.9, 90].map((value) => levelOf(value, thresholds))).toEqual([
    null,
    "warning",
    "warning",
    "critical",
  ]);
  expect(levelOf(1, null)).toBeNull();
  expect(shown(1.26, { unit: "m", decimals: 1 })).toBe("1.3 m");
  expect(shown(null, { unit: "m", decimals: 1 })).toBe("–");
  expect(shown(true, { unit: null, decimals: null })).toBe("true");
});

test.each([
  [3.23667, 3.237],
  [30.8417, 30.84],
  [123456.78, 123457],
  [0.000123456, 0.0001235],
  [-0, 0],
  [1e300, 1e300],
])("of the mean %s, %s is read", (value, read) => expect(ofMean(value) + 0).toBe(read));
