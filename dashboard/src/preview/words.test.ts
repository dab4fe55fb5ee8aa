import { describe, expect, test } from "vitest";
import { ApiError } from "../api/client";
import { TRIAL_RANGES } from "./cycles";
import type { Trial } from "./trial";
import { wordsOfTrial } from "./words";

const answered = (part: Partial<Extract<Trial, { kind: "done" }>>) => {
  const none = { kind: "done" as const, range: TRIAL_RANGES[1], cycles: 4_321, firings: [], inconclusive: 0 };
  return wordsOfTrial({ kind: "answered", trial: { ...none, ...part } }, 60);
};

describe("words of a try", () => {
  test("how often, and over what", () => {
    expect(answered({}).main).toBe("Would not have fired in the last 3 days.");
    expect(answered({ firings: [1] }).main).toBe("Would have fired once in the last 3 days.");
    expect(answered({ firings: [1, 2, 3] }).main).toBe("Would have fired 3 times in the last 3 days.");
    expect(answered({ range: TRIAL_RANGES[4] }).main).toBe("Would not have fired in the last hour.");
    expect(answered({}).note).toBe("4,321 evaluations, 1 min apart.");
  });

  test("verdicts that the points did not allow are counted", () => {
    expect(answered({ inconclusive: 12 }).note).toMatch(/; 12 of them inconclusive/);
    expect(answered({ inconclusive: 4_321 }).note).toMatch(/; all of them inconclusive/);
  });

  test("what cannot be tried out, and what can", () => {
    const cannot = (isOwn: boolean) =>
      wordsOfTrial({ kind: "answered", trial: { kind: "cannot", reason: "of a reason", isOwn } }, 60);
    expect(cannot(false).main).toBe("It cannot be tried out here: of a reason.");
    expect(cannot(false).note).toMatch(/tidewatch evaluate --backtest/);
    expect(cannot(true).note).toMatch(/\/api\/alerts\/backtest/);
  });

  test("waiting, faults and failures", () => {
    expect(wordsOfTrial({ kind: "faulty" }, 60).main).toMatch(/when nothing above is missing/);
    expect(wordsOfTrial({ kind: "running", before: null }, 60).main).toMatch(/Trying/);
    const error = new ApiError(503, "Service Unavailable", "the server is busy");
    expect(wordsOfTrial({ kind: "failed", error }, 60).note).toBe("The server is busy.");
  });
});
