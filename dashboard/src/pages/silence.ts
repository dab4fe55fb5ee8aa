/** Which sources have fallen silent. Pure. */
import type { Source } from "../api/sources";

/** So many of its expected or usual intervals may pass without a point. */
const INTERVALS = 3;
/** A source of many points a second may pause for a breath. */
const LEAST_MS = 60_000;
/** Whose interval is not known yet, with a single point, may send once a day. */
const UNKNOWN_MS = 86_400_000;

/** When the last point of a silent source was; null of one that sends, rests, or has sent nothing yet. */
export function silentSince({ status, expectedIntervalSeconds, stats }: Source, now: number): number | null {
  if (status !== "active" || stats.lastDataPoint === null) return null;
  const last = Date.parse(stats.lastDataPoint);
  const interval = stats.averageIntervalSeconds;
  const usual = interval === null ? UNKNOWN_MS : Math.max(INTERVALS * interval * 1000, LEAST_MS);
  const patience = expectedIntervalSeconds === null ? usual : INTERVALS * expectedIntervalSeconds * 1000;
  return now - last > patience ? last : null;
}

/** Silent ones first, the one that has been silent longest before the others; the rest as they were. */
export const bySilence = (now: number) => (a: Source, b: Source) => {
  const [left, right] = [silentSince(a, now) ?? Infinity, silentSince(b, now) ?? Infinity];
  return left === right ? 0 : left - right;
};
