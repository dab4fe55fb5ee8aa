/**
 * Moments as they are typed: `2026-01-31 14:30`, ISO 8601, `2026-01-31` for a whole day, `now`, `now-6h`, `today`,
 * `yesterday`. Pure: the time and the zone come as arguments.
 */
import { clockOf, momentAt } from "./clock";
import type { Zone } from "./preferences";

/** Which end of a range a moment is: a day begins one, and its end ends one. */
export type Edge = "from" | "to";

const RELATIVE = /^(?:now|(?:now\s*)?([+-])\s*(\d{1,6})\s*(s|m|h|d|w|M|y))$/;
const DAYS: Record<string, number> = { yesterday: -1, today: 0, tomorrow: 1 };
const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600 };

/** Whether a text means another moment as time goes on. */
export const isRelative = (text: string): boolean => text in DAYS || RELATIVE.test(text);

/** Null where the text is no moment. */
export function momentOf(text: string, zone: Zone, now: number, edge: Edge): number | null {
  const days = DAYS[text];
  if (days !== undefined) return dayEdge(now, days, zone, edge);
  const relative = RELATIVE.exec(text);
  if (relative !== null) {
    const [, sign, amount = "0", unit = "s"] = relative;
    return shifted(now, Number(amount) * (sign === "-" ? -1 : 1), unit, zone);
  }
  const at = parseTyped(text, zone);
  return at !== null && edge === "to" && isDay(text) ? dayEdge(at, 0, zone, "to") : at;
}

const isDay = (text: string): boolean => /^\s*\d{4}-\d{2}-\d{2}\s*$/.test(text);

/** Whether a text alone is a range: a day from its beginning to its end. */
export const isWholeDay = (text: string): boolean => isDay(text) || text in DAYS;

const dayEdge = (at: number, days: number, zone: Zone, edge: Edge): number =>
  dayBegin(at, 0, days + (edge === "to" ? 1 : 0), zone);

/** Where the day begins that is so many months and days behind that of a moment. */
export function dayBegin(at: number, months: number, days: number, zone: Zone): number {
  const { year, month, day } = clockOf(at, zone);
  return momentAt(zone, { year, month: month + months, day: day + days });
}

/** Days and longer go by the calendar: a day of a change of clocks has another length. */
function shifted(at: number, amount: number, unit: string, zone: Zone): number {
  const seconds = SECONDS[unit];
  if (seconds !== undefined) return at + amount * seconds * 1000;
  const clock = clockOf(at, zone);
  if (unit === "d" || unit === "w") clock.day += amount * (unit === "w" ? 7 : 1);
  else clock.month += amount * (unit === "y" ? 12 : 1);
  return momentAt(zone, clock);
}

/** A time as typed: ISO, or `YYYY-MM-DD HH:MM[:SS]`, read in the chosen zone. Null when it is neither. */
export function parseTyped(text: string, zone: Zone): number | null {
  const match =
    /^\s*(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?)?\s*(Z|[+-]\d{2}:\d{2})?\s*$/i.exec(
      text,
    );
  if (match === null) return null;
  const [, year, month, day, hour = "00", minute = "00", second = "00", fraction = "", offset] = match;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction.padEnd(3, "0")}`;
  const asUtc = Date.parse(`${iso}Z`);
  // Date.parse takes 31 February for 3 March; what was typed must be a day that there is.
  if (!Number.isFinite(asUtc) || new Date(asUtc).getUTCDate() !== Number(day)) return null;
  if (offset === undefined) return momentAt(zone, clockOf(asUtc, "utc"));
  const at = Date.parse(iso + offset);
  return Number.isFinite(at) ? at : null;
}
