/** Which sources have fallen silent. Pure. */
import type { Source } from "../api/sources";

/** So many of its usual intervals may pass without a point. */
const INTERVALS = 3;
/** A source of many points a second may pause for a breath. */
const LEAST_MS = 60_000;

/** When the last point of a silent source was; null of one that sends, rests, or has not shown how often it sends. */
export function silentSince({ status, stats }: Source, now: number): number | null {
  if (status !== "active" || stats.lastDataPoint === null || stats.averageIntervalSeconds === null) return null;
  const last = Date.parse(stats.lastDataPoint);
  return now - last > Math.max(INTERVALS * stats.averageIntervalSeconds * 1000, LEAST_MS) ? last : null;
}

/** Silent ones first, the one that has been silent longest before the others; the rest as they were. */
export const bySilence = (now: number) => (a: Source, b: Source) => {
  const [left, right] = [silentSince(a, now) ?? Infinity, silentSince(b, now) ?? Infinity];
  return left === right ? 0 : left - right;
};
