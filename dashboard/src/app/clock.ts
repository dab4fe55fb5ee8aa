/** Calendar and clock of a time zone, from a moment and back. Pure, except for which zone `local` is. */
import type { Zone } from "./preferences";

/** `month` counts from 0, as in `Date`. */
export interface Clock {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  ms: number;
}

const DAY_MS = 86_400_000;

/** By name; null for a name that this browser does not know. Making one takes longer than formatting with it. */
const formats = new Map<string, Intl.DateTimeFormat | null>();

function formatOf(name: string): Intl.DateTimeFormat | null {
  const made = formats.get(name);
  if (made !== undefined) return made;
  const numeric = "numeric" as const;
  let format: Intl.DateTimeFormat | null = null;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      calendar: "gregory",
      hourCycle: "h23",
      ...{ year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric, second: numeric },
    });
  } catch (error) {
    // The server may know zones that the browser does not.
    if (!(error instanceof RangeError)) throw error;
  }
  formats.set(name, format);
  return format;
}

/** Whether this browser can show times of a zone; those of another one are shown in UTC. */
export const isKnownZone = (zone: Zone): boolean => zone === "utc" || zone === "local" || formatOf(zone) !== null;

/** Whether a zone is chosen by its name, and known. */
export const isNamedZone = (zone: Zone): boolean => zone !== "utc" && zone !== "local" && isKnownZone(zone);

/** What calendar and clock show at a moment. */
export function clockOf(at: number, zone: Zone): Clock {
  const date = new Date(at);
  const ms = date.getUTCMilliseconds();
  if (zone === "local") {
    const [year, month, day] = [date.getFullYear(), date.getMonth(), date.getDate()];
    return { year, month, day, hour: date.getHours(), minute: date.getMinutes(), second: date.getSeconds(), ms };
  }
  const format = zone === "utc" ? null : formatOf(zone);
  if (format === null) {
    const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
    const [hour, minute, second] = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()];
    return { year, month, day, hour, minute, second, ms };
  }
  const parts = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 };
  for (const { type, value } of format.formatToParts(date))
    if (type in parts) parts[type as keyof typeof parts] = Number(value);
  return { ...parts, month: parts.month - 1, ms };
}

/** What a zone's clock is ahead of UTC at a moment. */
export function offsetMinutes(at: number, zone: Zone): number {
  const { year, month, day, hour, minute, second, ms } = clockOf(at, zone);
  return (Date.UTC(year, month, day, hour, minute, second, ms) - at) / 60_000;
}

/**
 * When a zone's clock shows this; parts may go beyond their ranges, as in `Date`. Of an hour that comes twice the first
 * one is meant; a time that a change of clocks leaves out is as far behind the change as it says.
 */
export function momentAt(zone: Zone, clock: Pick<Clock, "year" | "month" | "day"> & Partial<Clock>): number {
  const { year, month, day, hour = 0, minute = 0, second = 0, ms = 0 } = clock;
  if (zone === "local") return new Date(year, month, day, hour, minute, second, ms).getTime();
  const shown = Date.UTC(year, month, day, hour, minute, second, ms);
  const [before, after] = [shown - DAY_MS, shown + DAY_MS].map((at) => shown - offsetMinutes(at, zone) * 60_000);
  const isShown = (at: number) => at + offsetMinutes(at, zone) * 60_000 === shown;
  return !isShown(before!) && isShown(after!) ? after! : before!;
}
