import { describe, expect, test } from "vitest";
import { panned, parseTyped, readRange, spanOf, writeRange, zoomedIn, zoomedOut } from "./range";

const NOON = Date.UTC(2026, 0, 31, 12);

describe("ranges in the address", () => {
  test.each(["r=15m", "r=1y", "r=all", "from=2026-01-31T12%3A00%3A00.000Z&to=2026-01-31T13%3A00%3A00.000Z"])(
    "%s comes back as it was",
    (text) => {
      const search = new URLSearchParams();
      writeRange(readRange(new URLSearchParams(text)), search);
      expect(search.toString()).toBe(text);
    },
  );

  test.each(["", "r=2h", "r=__proto__", "from=x&to=y", "from=2026-01-02&to=2026-01-01"])(
    "%j is the default",
    (text) => {
      expect(readRange(new URLSearchParams(text))).toEqual({ kind: "last", preset: "24h" });
    },
  );
});

describe("spans", () => {
  test("a preset ends now", () => {
    expect(spanOf({ kind: "last", preset: "1h" }, NOON, null)).toEqual({ from: NOON - 3_600_000, to: NOON });
  });

  test("all is where the points are, a single one included", () => {
    const span = spanOf({ kind: "last", preset: "all" }, NOON, { from: NOON - 5000, to: NOON - 5000 });
    expect(span.from).toBeLessThan(NOON - 5000);
    expect(span.to).toBeGreaterThan(NOON - 5000);
  });

  test("out and in again is the same", () => {
    const span = { from: NOON, to: NOON + 8000 };
    const out = zoomedOut(span);
    expect(out).toEqual({ kind: "absolute", from: NOON - 4000, to: NOON + 12_000 });
    expect(out.kind === "absolute" && zoomedIn(out)).toEqual({ kind: "absolute", ...span });
  });

  test("there is an end to zooming in", () => {
    expect(zoomedIn({ from: NOON, to: NOON + 20 })).toEqual({ kind: "absolute", from: NOON, to: NOON + 20 });
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
