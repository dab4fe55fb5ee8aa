/** Where a value makes a rule fire: a tint over that part of the chart, and a dashed line at each end of it. */
import type uPlot from "uplot";

/** Both ends may be infinite; equal ends are a line. */
export interface Zone {
  low: number;
  high: number;
}

const TINT_OPACITY = 0.07;
/** A line further away than so many times what the data take up would leave them flat; it is not made room for. */
const REACH = 4;

/** The ends of the zones that the chart has a line at. */
export const linesOf = (zones: readonly Zone[]): number[] => [
  ...new Set(zones.flatMap(({ low, high }) => [low, high]).filter(Number.isFinite)),
];

/** Whether there is room for a line beside data from `min` to `max`. */
export function isNear(at: number, min: number, max: number): boolean {
  const size = max > min ? max - min : Math.max(Math.abs(max), 1);
  return at >= min - REACH * size && at <= max + REACH * size;
}

/** What is to be seen: the data, and the lines that are near them. Without data, all lines. */
export function rangeWith(
  zones: readonly Zone[],
  min: number | null,
  max: number | null,
): [min: number | null, max: number | null] {
  const lines = linesOf(zones).filter((at) => min === null || max === null || isNear(at, min, max));
  if (lines.length === 0) return [min, max];
  return [Math.min(min ?? Infinity, ...lines), Math.max(max ?? -Infinity, ...lines)];
}

export function drawZones(chart: uPlot, scale: string, zones: readonly Zone[], colour: string): void {
  const { ctx, bbox } = chart;
  const { min, max } = chart.scales[scale] ?? {};
  if (typeof min !== "number" || typeof max !== "number") return;
  const y = (value: number) => Math.round(chart.valToPos(Math.min(max, Math.max(min, value)), scale, true));
  ctx.save();
  ctx.fillStyle = colour;
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const { low, high } of zones) {
    ctx.globalAlpha = TINT_OPACITY;
    ctx.fillRect(bbox.left, y(high), bbox.width, y(low) - y(high));
  }
  ctx.globalAlpha = 1;
  for (const at of linesOf(zones)) {
    if (at < min || at > max) continue;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y(at));
    ctx.lineTo(bbox.left + bbox.width, y(at));
    ctx.stroke();
  }
  ctx.restore();
}
