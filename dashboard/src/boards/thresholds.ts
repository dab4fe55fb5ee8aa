/** What a panel says about a value: its level, and how it is written. Pure. */
import type { Level, Panel, Threshold } from "../api/boards";
import type { Value } from "../api/query";
import { formatValue } from "../app/format";

/** The level of the greatest threshold that the value has reached; null below all of them. */
export function levelOf(value: number, thresholds: readonly Threshold[] | null): Level | null {
  const reached = (thresholds ?? []).filter((threshold) => threshold.value <= value);
  reached.sort((a, b) => b.value - a.value);
  return reached[0]?.level ?? null;
}

/** Digits of a mean that mean something to a reader. */
const MEAN_DIGITS = 4;

/** A mean has digits that no sensor measured: four of them, and never fewer than there are before the point. */
export function ofMean(value: number): number {
  const before = Math.abs(value) < 1 ? 0 : Math.floor(Math.log10(Math.abs(value))) + 1;
  return Number.isFinite(value) ? Number(value.toPrecision(Math.min(15, Math.max(MEAN_DIGITS, before)))) : value;
}

export function shown(value: Value, { unit, decimals }: Pick<Panel, "unit" | "decimals">): string {
  if (value === null) return "–";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string") return value;
  const number = decimals === null ? formatValue(value) : value.toFixed(decimals);
  return unit === null || unit === "" ? number : `${number} ${unit}`;
}
