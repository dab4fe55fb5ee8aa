/** Steps of time that values are grouped by: where they end, and what they are called. Pure. */
import { STEP_SECONDS, type Step } from "../api/query";
import type { Zone } from "../app/preferences";
import { formatSpan, formatTime } from "../app/format";

/** Steps of calendar days, which the server begins by UTC. */
const DAYS: readonly Step[] = ["day", "week", "month"];

export const isDays = (step: Step): boolean => DAYS.includes(step);

export function stepEnd(start: number, step: Step): number {
  if (step !== "month") return start + STEP_SECONDS[step] * 1000;
  const date = new Date(start);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** `minute`, `5 s`, `day`; `UTC day` where the reader's days are others. */
export function stepName(step: Step, zone: Zone): string {
  if (isDays(step)) return zone === "local" ? `UTC ${step}` : step;
  if (step === "minute" || step === "hour") return step;
  return formatSpan(STEP_SECONDS[step]);
}

/** What a step is called that begins at `start`: a day has no time of day. */
export function stepTime(start: number, step: Step, zone: Zone): string {
  if (!isDays(step)) return formatTime(start, zone);
  const date = new Date(start).toISOString().slice(0, step === "month" ? 7 : 10);
  return `${step === "week" ? "week of " : ""}${date}${zone === "local" ? " UTC" : ""}`;
}
