/** How often a live view asks, so that an hour of it costs little of a month's calls. Pure. */

/** Share of the month's calls that an hour of live may cost. */
export const LIVE_SHARE_PER_HOUR = 0.01;

/** Between two rounds of `callsPerRound` calls, in milliseconds: never more than one call a second. */
export function livePeriodMs(callsLimit: number | null, callsPerRound: number): number {
  const calls = Math.max(1, callsPerRound);
  if (callsLimit === null) return calls * 1000;
  const callsPerHour = Math.max(1, callsLimit * LIVE_SHARE_PER_HOUR);
  return Math.max(calls * 1000, Math.ceil((calls * 3600) / callsPerHour) * 1000);
}

/** What the user is told about it. */
export function liveCost(callsLimit: number | null, callsPerRound: number): string {
  const seconds = livePeriodMs(callsLimit, callsPerRound) / 1000;
  const every = seconds === 1 ? "Asks each second" : `Asks every ${seconds} s`;
  if (callsLimit === null) return `${every}; your plan has no limit of calls.`;
  const perHour = Math.round((3600 / seconds) * callsPerRound);
  return `${every}: an hour of live costs ${perHour.toLocaleString("en-GB")} of the month's ${callsLimit.toLocaleString("en-GB")} calls.`;
}
