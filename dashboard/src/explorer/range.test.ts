import { describe, expect, test } from "vitest";
import { parseTyped } from "../app/moment";
import {
  endsNow,
  panned,
  readRange,
  spanOf,
  tidied,
  timesOf,
  typedRange,
  writeRange,
  zoomedIn,
  zoomedOut,
} from "./range";

const NOON = Date.UTC(2026, 0, 31, 12);

describe("ranges in the address", () => {
  test.each([
    "r=15m",
    "r=1y",
    "r=all",
    "from=now-6h&to=now",
    "from=yesterday&to=yesterday",
    "from=2026-01-31T12%3A00%3A00.000Z&to=2026-01-31T13%3A00%3A00.000Z",
  ])("%s comes back as it was", (text) => {
    const search = new URLSearchParams();
    writeRange(readRange(new URLSearchParams(text)), search);
    expect(search.toString()).toBe(text);
  });

  test.each(["", "r=2h", "r=__proto__", "from=x&to=y", "from=2026-01-02&to=2026-01-01"])(
    "%j is the default",
    (text) => {
      expect(readRange(new URLSearchParams(text))).toEqual({ kind: "last", preset: "24h" });
    },
  );
});

describe("spans", () => {
  test("a preset ends now", () => {
    expect(spanOf({ kind: "last", preset: "1h" }, NOON, null, "utc")).toEqual({ from: NOON - 3_600_000, to: NOON });
  });

  test("all is where the points are, a single one included", () => {
    const span = spanOf({ kind: "last", preset: "all" }, NOON, { from: NOON - 5000, to: NOON - 5000 }, "utc");
    expect(span.from).toBeLessThan(NOON - 5000);
    expect(span.to).toBeGreaterThan(NOON - 5000);
  });

  test("a day is asked for up to just before the next one", () => {
    const day = { from: Date.UTC(2026, 10, 20), to: Date.UTC(2026, 10, 21) };
    const times = { startTime: "2026-11-20T00:00:00.000Z", endTime: "2026-11-20T23:59:59.999999999Z" };
    expect(timesOf(day)).toEqual(times);
    expect(timesOf({ from: 0, to: 1.5 }).endTime).toBe("1970-01-01T00:00:00.001999999Z");
  });

  test("out and in again is the same", () => {
    const span = { from: NOON, to: NOON + 8000 };
    const out = zoomedOut(span, NOON + 60_000);
    expect(out).toEqual({ kind: "absolute", from: NOON - 4000, to: NOON + 12_000 });
    expect(out.kind === "absolute" && zoomedIn(out)).toEqual({ kind: "absolute", ...span });
  });

  test("zooming out keeps to what has been", () => {
    const hour = 3_600_000;
    const out = zoomedOut({ from: NOON - hour, to: NOON }, NOON);
    expect(out).toEqual({ kind: "absolute", from: NOON - 2 * hour, to: NOON });
    // What was chosen to come stays, and gets no more.
    expect(zoomedOut({ from: NOON - hour, to: NOON + hour }, NOON)).toMatchObject({ to: NOON + hour });
  });

  test("a span drawn by hand has whole seconds where they are finer than the screen", () => {
    expect(tidied({ from: NOON + 0.4, to: NOON + 900_000.7 })).toEqual({ from: NOON, to: NOON + 901_000 });
    expect(tidied({ from: NOON + 0.4, to: NOON + 50.7 })).toEqual({ from: NOON, to: NOON + 51 });
  });

  test("there is an end to zooming in", () => {
    const half = { kind: "absolute", from: NOON + 500, to: NOON + 1500 };
    expect(zoomedIn({ from: NOON, to: NOON + 2000 })).toEqual(half);
    expect(zoomedIn({ from: NOON, to: NOON + 1500 })).toEqual({ kind: "absolute", from: NOON + 250, to: NOON + 1250 });
    for (const length of [20, 1000]) {
      const span = { from: NOON, to: NOON + length };
      expect(zoomedIn(span, NOON)).toEqual({ kind: "absolute", ...span });
    }
  });

  test("the moment of the cursor stays where it is", () => {
    const span = { from: NOON, to: NOON + 8000 };
    expect(zoomedIn(span, NOON + 8000)).toEqual({ kind: "absolute", from: NOON + 4000, to: NOON + 8000 });
    expect(zoomedIn(span, NOON + 2000)).toEqual({ kind: "absolute", from: NOON + 1000, to: NOON + 5000 });
    expect(zoomedIn(span, NOON - 1)).toEqual(zoomedIn(span));
  });

  test("panning keeps the width", () => {
    expect(panned({ from: NOON, to: NOON + 8000 }, -1)).toEqual({
      kind: "absolute",
      from: NOON - 4000,
      to: NOON + 4000,
    });
  });
});

describe("typed times", () => {
  test.each([
    ["2026-01-31 12:00", NOON],
    ["2026-01-31T12:00:00Z", NOON],
    ["2026-01-31 13:00+01:00", NOON],
    ["2026-01-31 12:00:00.25", NOON + 250],
    [" 2026-01-31 ", Date.UTC(2026, 0, 31)],
  ])("%s", (text, at) => expect(parseTyped(text, "utc")).toBe(at));

  test.each(["", "noon", "31.01.2026", "2026-13-01", "2026-02-31 10:00", "2026-01-31 25:00", "1795257843"])(
    "%j is none",
    (text) => {
      expect(parseTyped(text, "utc")).toBeNull();
    },
  );
});

describe("typed ranges", () => {
  const spanOfTyped = (from: string, to: string) => {
    const range = typedRange(from, to, "utc", NOON);
    return typeof range === "string" ? range : spanOf(range, NOON, null, "utc");
  };
  const day = Date.UTC(2026, 0, 31);
  const hour = 3_600_000;

  test.each([
    ["now-6h", "now", NOON - 6 * hour, NOON],
    ["-90m", "", NOON - 1.5 * hour, NOON],
    ["now-1M", "now", Date.UTC(2025, 11, 31, 12), NOON],
    ["yesterday", "", day - 24 * hour, day],
    ["today", "now", day, NOON],
    ["2026-01-30", "", day - 24 * hour, day],
    ["2026-01-29", "2026-01-30", day - 48 * hour, day],
    ["2026-01-31 06:00", "now", day + 6 * hour, NOON],
  ])("%s to %j", (from, to, start, end) => expect(spanOfTyped(from, to)).toEqual({ from: start, to: end }));

  test.each([
    ["soon", "", /^write a time as/],
    ["now", "now-1h", /^the start must be before/],
    ["", "", /^write a time as/],
  ])("%j to %j is refused", (from, to, fault) => expect(spanOfTyped(from, to)).toMatch(fault));

  test("a range that ends now can be followed", () => {
    const ends = (from: string, to: string) => {
      const range = typedRange(from, to, "utc", NOON);
      return typeof range !== "string" && endsNow(range);
    };
    expect([ends("now-6h", "now"), ends("yesterday", ""), ends("2026-01-29", "")]).toEqual([true, false, false]);
  });
});
