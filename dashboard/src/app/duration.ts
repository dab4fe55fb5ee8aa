/** Lengths of time as people type them: `90`, `90s`, `5m`, `1h 30m`. Pure. */

const UNITS: Record<string, number> = { s: 1, sec: 1, m: 60, min: 60, h: 3_600, d: 86_400, w: 604_800 };
const PART = /(\d+(?:\.\d+)?)\s*(s|sec|m|min|h|d|w)(?![a-z])\s*/gy;

/** Seconds; a number without a unit is of seconds. Null of what is no length. */
export function durationOf(text: string): number | null {
  const typed = text.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(typed)) return Number(typed);
  let [seconds, at] = [0, 0];
  PART.lastIndex = 0;
  for (let found = PART.exec(typed); found !== null; found = PART.exec(typed)) {
    seconds += Number(found[1]) * UNITS[found[2]!]!;
    at = PART.lastIndex;
  }
  return typed === "" || at < typed.length ? null : Number(seconds.toFixed(6));
}

/** In the greatest unit of which it is a whole number: `5m`, `90s`. */
export function shortDuration(seconds: number): string {
  for (const unit of ["d", "h", "m"]) {
    if (seconds > 0 && seconds % UNITS[unit]! === 0) return `${seconds / UNITS[unit]!}${unit}`;
  }
  return `${seconds}s`;
}
