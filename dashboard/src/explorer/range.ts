/** The stretch of time that is looked at: the last so much, everything, or from a moment to a moment. Pure. */

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

export type Range = { kind: "last"; preset: PresetId } | { kind: "absolute"; from: number; to: number };

export interface Span {
  from: number;
  to: number;
}

export const DEFAULT_RANGE: Range = { kind: "last", preset: "24h" };

/** A drag below this is a click that slipped. */
export const SPAN_MS_MIN = 10;

/** `r=6h`, or `from` and `to` as ISO times; what cannot be read is the default. */
export function readRange(search: URLSearchParams): Range {
  const from = Date.parse(search.get("from") ?? "");
  const to = Date.parse(search.get("to") ?? "");
  if (Number.isFinite(from) && Number.isFinite(to) && from < to) return { kind: "absolute", from, to };
  const asked = search.get("r");
  const preset = asked === "all" ? asked : PRESETS.find(({ id }) => id === asked)?.id;
  return preset === undefined ? DEFAULT_RANGE : { kind: "last", preset };
}

export function writeRange(range: Range, search: URLSearchParams): void {
  if (range.kind === "last") search.set("r", range.preset);
  else {
    search.set("from", new Date(range.from).toISOString());
    search.set("to", new Date(range.to).toISOString());
  }
}

/** The moments themselves. `extent` is where the selected sources have points; it decides what "all" is. */
export function spanOf(range: Range, now: number, extent: Span | null): Span {
  if (range.kind === "absolute") return { from: range.from, to: range.to };
  const preset = PRESETS.find(({ id }) => id === range.preset);
  if (preset !== undefined) return { from: now - preset.seconds * 1000, to: now };
  if (extent === null) return { from: now - 86_400_000, to: now };
  // A single point still needs a stretch to be drawn in.
  const margin = Math.max((extent.to - extent.from) * 0.005, 1000);
  return { from: extent.from - margin, to: extent.to + margin };
}

/** Twice as much around the same middle. */
export function zoomedOut({ from, to }: Span): Range {
  const half = (to - from) / 2;
  return { kind: "absolute", from: Math.round(from - half), to: Math.round(to + half) };
}

/** The middle half. */
export function zoomedIn({ from, to }: Span): Range {
  const quarter = (to - from) / 4;
  if (to - from < 4 * SPAN_MS_MIN) return { kind: "absolute", from, to };
  return { kind: "absolute", from: Math.round(from + quarter), to: Math.round(to - quarter) };
}

/** Half a screen earlier (-1) or later (1). */
export function panned({ from, to }: Span, direction: -1 | 1): Range {
  const step = ((to - from) / 2) * direction;
  return { kind: "absolute", from: Math.round(from + step), to: Math.round(to + step) };
}

/** A time as typed: ISO, or `YYYY-MM-DD HH:MM[:SS]`, read in the chosen zone. Null when it is neither. */
export function parseTyped(text: string, zone: "utc" | "local"): number | null {
  const match =
    /^\s*(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?)?\s*(Z|[+-]\d{2}:\d{2})?\s*$/i.exec(
      text,
    );
  if (match === null) return null;
  const [, year, month, day, hour = "00", minute = "00", second = "00", fraction = "", offset] = match;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction.padEnd(3, "0")}`;
  const at = Date.parse(iso + (offset ?? (zone === "utc" ? "Z" : "")));
  if (!Number.isFinite(at)) return null;
  // Date.parse takes 31 February for 3 March; what was typed must be a day that there is.
  return new Date(Date.parse(`${iso}Z`)).getUTCDate() === Number(day) ? at : null;
}
