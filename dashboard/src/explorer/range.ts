/** The stretch of time that is looked at: the last so much, everything, or from a moment to a moment. Pure. */
import type { Zone } from "../app/preferences";
import { isRelative, isWholeDay, momentOf } from "../app/moment";

export const PRESETS = [
  { id: "15m", seconds: 900, label: "15 minutes" },
  { id: "1h", seconds: 3_600, label: "1 hour" },
  { id: "6h", seconds: 6 * 3_600, label: "6 hours" },
  { id: "24h", seconds: 86_400, label: "24 hours" },
  { id: "7d", seconds: 7 * 86_400, label: "7 days" },
  { id: "30d", seconds: 30 * 86_400, label: "30 days" },
  { id: "90d", seconds: 90 * 86_400, label: "90 days" },
  { id: "1y", seconds: 365 * 86_400, label: "1 year" },
] as const;

export type PresetId = (typeof PRESETS)[number]["id"] | "all";

export type Range =
  | { kind: "last"; preset: PresetId }
  | { kind: "absolute"; from: number; to: number }
  /** As typed, where at least one end moves on with the time; the other may be an ISO time. */
  | { kind: "typed"; from: string; to: string };

export interface Span {
  from: number;
  to: number;
}

export const DEFAULT_RANGE: Range = { kind: "last", preset: "24h" };

const DAY_MS = 86_400_000;

/** A drag below this is a click that slipped. */
export const SPAN_MS_MIN = 10;
/** Where zooming in step by step ends. */
const ZOOMED_MS_MIN = 1000;

/** `r=6h`, or `from` and `to` as ISO times or as `now-6h`; what cannot be read is the default. */
export function readRange(search: URLSearchParams): Range {
  const [start, end] = [search.get("from") ?? "", search.get("to") ?? ""];
  if (isRelative(start) || isRelative(end)) {
    const range = typedRange(start, end, "utc", Date.now());
    if (typeof range !== "string") return range;
  }
  const [from, to] = [Date.parse(start), Date.parse(end)];
  if (Number.isFinite(from) && Number.isFinite(to) && from < to) return { kind: "absolute", from, to };
  const asked = search.get("r");
  const preset = asked === "all" ? asked : PRESETS.find(({ id }) => id === asked)?.id;
  return preset === undefined ? DEFAULT_RANGE : { kind: "last", preset };
}

export function writeRange(range: Range, search: URLSearchParams): void {
  if (range.kind === "last") search.set("r", range.preset);
  else if (range.kind === "typed") {
    search.set("from", range.from);
    search.set("to", range.to);
  } else {
    search.set("from", new Date(range.from).toISOString());
    search.set("to", new Date(range.to).toISOString());
  }
}

/** What two typed texts mean, or what is wrong with them. */
export function typedRange(fromText: string, toText: string, zone: Zone, now: number): Range | string {
  const start = fromText.trim();
  // A day alone is the whole of it, another moment alone lasts until now.
  const end = toText.trim() === "" ? (isWholeDay(start) ? start : "now") : toText.trim();
  const [from, to] = [momentOf(start, zone, now, "from"), momentOf(end, zone, now, "to")];
  if (from === null || to === null) return "write a time as 2026-01-31 14:30, a day, now-6h, today or yesterday";
  if (from >= to) return "the start must be before the end";
  if (!isRelative(start) && !isRelative(end)) return { kind: "absolute", from, to };
  const fixed = (text: string, at: number) => (isRelative(text) ? text : new Date(at).toISOString());
  return { kind: "typed", from: fixed(start, from), to: fixed(end, to) };
}

/** Whether a range ends now, and can be followed. */
export const endsNow = (range: Range): boolean =>
  range.kind === "last" || (range.kind === "typed" && (range.to === "now" || range.to === "today"));

/** The moments themselves. `extent` is where the selected sources have points; it decides what "all" is. */
export function spanOf(range: Range, now: number, extent: Span | null, zone: Zone): Span {
  if (range.kind === "absolute") return { from: range.from, to: range.to };
  if (range.kind === "typed") {
    const from = momentOf(range.from, zone, now, "from") ?? now - DAY_MS;
    return { from, to: Math.max(from + SPAN_MS_MIN, momentOf(range.to, zone, now, "to") ?? now) };
  }
  const preset = PRESETS.find(({ id }) => id === range.preset);
  if (preset !== undefined) return { from: now - preset.seconds * 1000, to: now };
  if (extent === null) return { from: now - DAY_MS, to: now };
  // A single point still needs a stretch to be drawn in.
  const margin = Math.max((extent.to - extent.from) * 0.005, 1000);
  return { from: extent.from - margin, to: extent.to + margin };
}

/**
 * A span as it is asked for. The API's `endTime` is inclusive, a span ends just before its end: a point exactly there
 * is the first of the next span, and a day has no 25th hour.
 */
export const timesOf = ({ from, to }: Span): { startTime: string; endTime: string } => ({
  startTime: new Date(from).toISOString(),
  endTime: new Date(Math.ceil(to) - 1).toISOString().replace("Z", "999999Z"),
});

/** Twice as much around the same middle, but nothing of the time to come. */
export function zoomedOut({ from, to }: Span, now: number): Range {
  const half = (to - from) / 2;
  const out = notBehind({ from: from - half, to: to + half }, Math.max(to, now));
  return { kind: "absolute", from: Math.round(out.from), to: Math.round(out.to) };
}

/** Moved back so that nothing of it is behind `limit`. */
export function notBehind({ from, to }: Span, limit: number): Span {
  const over = Math.max(0, to - limit);
  return { from: from - over, to: to - over };
}

/** A span that was drawn by hand: what is below the screen's resolution is not meant. */
export function tidied({ from, to }: Span): Span {
  const unit = to - from > 100_000 ? 1000 : 1;
  return { from: Math.floor(from / unit) * unit, to: Math.ceil(to / unit) * unit };
}

/** Half as much, in which a moment stays where it is: that of the cursor, else the middle. */
export function zoomedIn({ from, to }: Span, cursor: number | null = null): Range {
  const length = Math.max(ZOOMED_MS_MIN, (to - from) / 2);
  if (to - from <= length) return { kind: "absolute", from, to };
  const at = cursor !== null && cursor >= from && cursor <= to ? cursor : (from + to) / 2;
  const start = at - ((at - from) / (to - from)) * length;
  return { kind: "absolute", from: Math.round(start), to: Math.round(start + length) };
}

/** Half a screen earlier (-1) or later (1). */
export function panned({ from, to }: Span, direction: -1 | 1): Range {
  const step = ((to - from) / 2) * direction;
  return { kind: "absolute", from: Math.round(from + step), to: Math.round(to + step) };
}
