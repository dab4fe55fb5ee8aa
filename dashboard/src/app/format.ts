/** Numbers, spans and times as people read them. Pure: the time zone comes as an argument. */
import { clockOf, offsetMinutes } from "./clock";
import type { Zone } from "./preferences";

const counts = new Intl.NumberFormat("en-GB");
// British English would write a million as a small m, which an engineer reads as a thousandth.
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** `1,036,800`. */
export const formatCount = (value: number): string => counts.format(value);

/** `1M`, for cards; exact below ten thousand. */
export const formatCompact = (value: number): string => (value < 10_000 ? counts.format(value) : compact.format(value));

/** Up to here a double has all digits of an integer and three behind the point. */
const PLAIN_BELOW = 1e12;

/**
 * A measurement with six significant digits, so that columns stay narrow and noise stays out, and never fewer than
 * there are before the point: a meter's reading is not rounded. `step`: what neighbours on an axis differ by; they
 * must not read alike.
 */
export function formatValue(value: number, step?: number): string {
  if (!Number.isFinite(value)) return String(value);
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude >= PLAIN_BELOW || magnitude < 1e-4)) return scientific(value, step);
  const before = magnitude < 1 ? 0 : Math.floor(Math.log10(magnitude)) + 1;
  const apart = step === undefined ? 0 : before + Math.max(0, Math.ceil(-Math.log10(step)));
  return String(Number(value.toPrecision(Math.min(15, Math.max(6, before + (before > 5 ? 1 : 0), apart)))));
}

function scientific(value: number, step: number | undefined): string {
  const apart = step === undefined ? 3 : Math.ceil(Math.log10(Math.abs(value) / step));
  return value.toExponential(Math.min(14, Math.max(3, apart)));
}

/** A number as people write one: `5.5`, `-3e4`. A script's own reading takes `0x10` and blanks for numbers, too. */
export function numberOf(text: string): number | null {
  const written = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim());
  const number = Number(text);
  return written && Number.isFinite(number) ? number : null;
}

const two = (n: number): string => String(n).padStart(2, "0");

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `0 B`, `89.1 KiB`, `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  // What would be rounded to 1,024 of a unit is 1 of the next.
  while (value >= 1023.95 && unit < BYTE_UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${counts.format(Number(value.toFixed(1)))} ${BYTE_UNITS[unit]}`;
}

/** `3 sources`, `1 source`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

const SPANS: [string, number][] = [
  ["y", 365 * 86_400],
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];

/** `2 d 4 h`, `15 min`, `1.5 s`: at most two units. */
export function formatSpan(seconds: number): string {
  const sign = seconds < 0 ? "−" : "";
  let rest = Math.abs(seconds);
  if (rest < 10 && rest % 1 !== 0) return `${sign}${Number(rest.toFixed(2))} s`;
  rest = Math.round(rest);
  for (const [index, [unit, size]] of SPANS.entries()) {
    if (rest < size) continue;
    const whole = Math.floor(rest / size);
    const next = SPANS[index + 1];
    const more = next === undefined ? 0 : Math.floor((rest - whole * size) / next[1]);
    return more === 0 || next === undefined ? `${sign}${whole} ${unit}` : `${sign}${whole} ${unit} ${more} ${next[0]}`;
  }
  return "0 s";
}

/** `04:59`, `1:00:00`: what a timer shows. */
export function formatTimer(seconds: number): string {
  const rest = Math.max(0, Math.ceil(seconds));
  const hours = Math.floor(rest / 3600);
  const minutes = Math.floor((rest % 3600) / 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest % 60)}` : `${two(minutes)}:${two(rest % 60)}`;
}

/** `3 min ago`, `in 2 h`, `just now`. */
export function formatAgo(at: number, now: number): string {
  const seconds = (now - at) / 1000;
  if (Math.abs(seconds) < 5) return "just now";
  const [unit, size] = SPANS.find(([, span]) => Math.abs(seconds) >= span) ?? ["s", 1];
  const whole = Math.floor(Math.abs(seconds) / size);
  return seconds < 0 ? `in ${whole} ${unit}` : `${whole} ${unit} ago`;
}

/** `2026-11-21 10:45:27`, with milliseconds when there are any. */
export function formatTime(at: number, zone: Zone): string {
  if (Number.isNaN(new Date(at).getTime())) return "–";
  const { year, month, day, hour, minute, second, ms } = clockOf(at, zone);
  const time = `${year}-${two(month + 1)}-${two(day)} ${two(hour)}:${two(minute)}:${two(second)}`;
  return `${time}${ms === 0 ? "" : `.${String(ms).padStart(3, "0")}`}`;
}

/** `10:45` of today, else `2026-11-20 10:45`. */
export function formatMoment(at: number, now: number, zone: Zone): string {
  const [text, today] = [formatTime(at, zone), formatTime(now, zone)];
  return text.slice(0, 10) === today.slice(0, 10) ? text.slice(11, 16) : text.slice(0, 16);
}

/** The zone's name beside a time: `UTC`, or the offset of that moment. */
export function zoneName(zone: Zone, at: number): string {
  if (zone === "utc") return "UTC";
  const minutes = offsetMinutes(at, zone);
  if (minutes === 0 && zone !== "local") return "UTC";
  const ahead = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${two(Math.floor(ahead / 60))}:${two(ahead % 60)}`;
}

/** API messages begin in lower case without a final stop; on the page they are sentences. */
export function sentence(message: string): string {
  const text = message.trim();
  if (text === "") return text;
  return text[0]!.toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}

/** The value of any JSON as one line of text. */
export function formatAny(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return formatValue(value);
  if (typeof value === "string") return value;
  return typeof value === "boolean" ? String(value) : JSON.stringify(value);
}
