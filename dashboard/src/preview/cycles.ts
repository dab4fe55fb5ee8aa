/** The past cycles that a draft is tried out on. Pure. */

/** The server takes as many verdicts at once. */
export const VERDICTS_MAX = 10_000;

/** Longest first. */
export const TRIAL_RANGES = [
  { seconds: 7 * 86_400, name: "7 days" },
  { seconds: 3 * 86_400, name: "3 days" },
  { seconds: 86_400, name: "24 hours" },
  { seconds: 6 * 3_600, name: "6 hours" },
  { seconds: 3_600, name: "hour" },
] as const;
export type TrialRange = (typeof TRIAL_RANGES)[number];

/** Lengths of steps that divide no day count from here, the Monday after the epoch; those of whole days as well. */
export const STEPS_FROM_MS = 4 * 86_400_000;

/**
 * Cycles, by the ends of their windows in milliseconds, ascending. A window ends a nanosecond before, and begins as
 * much before the length of a window earlier: so it is made of whole steps, of which each contains its first instant
 * and not its last.
 */
export interface Cycles {
  range: TrialRange;
  intervalMs: number;
  first: number;
  last: number;
  count: number;
}

/** The ranges whose cycles fit into one request, longest first; a rule that is due less often has one cycle in each. */
export function trialRanges(intervalSeconds: number): TrialRange[] {
  return TRIAL_RANGES.filter(({ seconds }) => countOf(seconds, intervalSeconds) <= VERDICTS_MAX);
}

const countOf = (seconds: number, intervalSeconds: number) => Math.floor(seconds / intervalSeconds) + 1;

export function cyclesOf(range: TrialRange, intervalSeconds: number, now: number): Cycles {
  const intervalMs = intervalSeconds * 1000;
  const count = countOf(range.seconds, intervalSeconds);
  const last = STEPS_FROM_MS + Math.floor((now - STEPS_FROM_MS) / intervalMs) * intervalMs;
  return { range, intervalMs, first: last - (count - 1) * intervalMs, last, count };
}

/** A cycle as the server is told of it: a nanosecond before the end of the step. */
export const instantOf = (end: number): string => new Date(end - 1).toISOString().replace("Z", "999999Z");

/** The longest step, in seconds, that all of these are multiples of. */
export const commonStep = (lengths: readonly number[]): number => lengths.reduce(divisor);

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}
