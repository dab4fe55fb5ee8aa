/** Steps of time that values are grouped by: where they end, and what they are called. Pure. */
import { STEP_SECONDS, type Step } from "../api/query";
import type { Zone } from "../app/preferences";
import { formatSpan, formatTime } from "../app/format";
import { dayBegin } from "../app/moment";

/** Steps of calendar days, of which not all are of one length. */
const DAYS: Partial<Record<Step, [months: number, days: number]>> = { day: [0, 1], week: [0, 7], month: [1, 0] };

/** Where a step ends that begins at `start`, by the clock of the zone. */
export function stepEnd(start: number, step: Step, zone: Zone): number {
  const [months, days] = DAYS[step] ?? [0, 0];
  if (months + days === 0) return start + STEP_SECONDS[step] * 1000;
  return dayBegin(start, months, days, zone);
}

/** `minute`, `5 s`, `day`. */
export function stepName(step: Step): string {
  if (step === "minute" || step === "hour" || DAYS[step] !== undefined) return step;
  return formatSpan(STEP_SECONDS[step]);
}

/** What a step is called that begins at `start`: a day has no time of day. */
export function stepTime(start: number, step: Step, zone: Zone): string {
  const time = formatTime(start, zone);
  if (DAYS[step] === undefined) return time;
  return `${step === "week" ? "week of " : ""}${time.slice(0, step === "month" ? 7 : 10)}`;
}
