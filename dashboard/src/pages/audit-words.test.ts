import { describe, expect, it } from "vitest";
import { actionWords, changeWords, summary } from "./audit-words";

describe("the audit in words", () => {
  it("names targets as the page does", () => {
    expect(actionWords("bucket.updated")).toBe("bucket updated");
    expect(actionWords("mute.deleted")).toBe("silence deleted");
    expect(actionWords("data.deleted")).toBe("points deleted");
    expect(actionWords("gauge.calibrated")).toBe("gauge calibrated");
  });

  it("shows what was replaced, and what stands alone", () => {
    expect(
      changeWords({
        retentionDays: { old: 30, new: 90 },
        description: { old: null, new: "Hall 3" },
        deletedCount: 60,
        filters: { dataSourceIds: ["a"] },
      }),
    ).toEqual([
      { member: "retentionDays", old: "30", new: "90" },
      { member: "description", old: null, new: "Hall 3" },
      { member: "deletedCount", old: null, new: "60" },
      { member: "filters", old: null, new: '{"dataSourceIds":["a"]}' },
    ]);
  });

  it("sums up many members", () => {
    expect(summary({ name: {} })).toBe("name");
    expect(summary({ a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 })).toBe("a, b, c, d and 2 more");
  });
});
