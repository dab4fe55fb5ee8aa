/** `absence`: no data arrived. The only kind for which an empty window means something. */
import type { Value } from "../api/query";
import type { Outcome } from "../api/rules";
import type { Parameters, Part, Window } from "./entry";

/** Between when and when the newest point of a row lies, in milliseconds; of a point both are its time. */
export interface Presence {
  from: number;
  to: number;
}

/** `lengthMs`: of the step that the row is a group of; 0 of a point. */
export const presenceOf = (at: number, value: Value, lengthMs: number): Presence | null =>
  value === null || typeof value === "object" ? null : { from: at, to: at + lengthMs };

/** `window`: null of a query without a time range. */
export function absence(
  parameters: Parameters,
  { entries, first, behind }: Part<Presence>,
  window: Window | null,
): Outcome {
  const newest = behind > first ? entries[behind - 1] : undefined;
  const gapSeconds = parameters["maxGapSeconds"];
  if (gapSeconds === undefined) return newest === undefined ? "met" : "not_met";
  const gapMs = Number(gapSeconds) * 1000;
  if (window === null) return "inconclusive";
  // Any earlier row is older than the window is long.
  if (newest === undefined) return window.end - window.start >= gapMs ? "met" : "inconclusive";
  if (window.end - newest.to > gapMs) return "met";
  return window.end - newest.from <= gapMs ? "not_met" : "inconclusive";
}
