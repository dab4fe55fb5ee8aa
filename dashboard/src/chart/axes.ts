/** Axes of the chart: time in 24-hour ISO style, values by unit, switches as false and true. */
import uPlot from "uplot";
import { clockOf } from "../app/clock";
import { formatValue } from "../app/format";
import type { Zone } from "../app/preferences";
import type { Line } from "../explorer/series";

export interface ChartColours {
  text: string;
  grid: string;
  tick: string;
  mark: string;
}

const DAY_MS = 86_400_000;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

interface Parts {
  year: number;
  month: number;
  day: number;
  clock: string;
}

function partsOf(at: number, zone: Zone, seconds: boolean): Parts {
  const two = (n: number) => String(n).padStart(2, "0");
  const { year, month, day, hour, minute, second, ms } = clockOf(at, zone);
  const fraction = ms === 0 ? "" : `.${String(ms).padStart(3, "0")}`;
  return { year, month, day, clock: `${two(hour)}:${two(minute)}${seconds ? `:${two(second)}${fraction}` : ""}` };
}

/** What stands at the ticks of a time axis: the changing part above, what it belongs to below where that changes. */
export function tickLabels(splits: number[], stepMs: number, zone: Zone): string[] {
  let before: Parts | null = null;
  return splits.map((at) => {
    const parts = partsOf(at, zone, stepMs < 60_000);
    const newDay = before === null || before.day !== parts.day || before.month !== parts.month;
    const newYear = before === null || before.year !== parts.year;
    before = parts;
    const day = `${parts.day} ${MONTHS[parts.month]}`;
    if (stepMs < DAY_MS) return newDay ? `${parts.clock}\n${day}` : parts.clock;
    if (stepMs < 28 * DAY_MS) return newYear ? `${day}\n${parts.year}` : day;
    return newYear ? `${MONTHS[parts.month]}\n${parts.year}` : MONTHS[parts.month]!;
  });
}

/** What ticks may lie apart, over all that a double holds: uPlot's own list ends at 10³². */
const STEPS = Array.from({ length: 340 }, (_, index) => [1, 2, 2.5, 5].map((n) => Number(`${n}e${index - 32}`))).flat();

/** As much of a unit as an axis has room for; the legend has it whole. */
const UNIT_CHARS_MAX = 8;

export const shortened = (unit: string): string =>
  [...unit].length <= UNIT_CHARS_MAX ? unit : `${[...unit].slice(0, UNIT_CHARS_MAX - 1).join("")}…`;

export const scaleOf = (line: Line): string => (line.type === "boolean" ? "switch" : `unit:${line.unit}`);

export function timeAxis(colours: ChartColours, font: string, zone: Zone): uPlot.Axis {
  return {
    stroke: colours.text,
    font,
    grid: { stroke: colours.grid, width: 1 },
    ticks: { stroke: colours.tick, width: 1, size: 6 },
    size: 44,
    space: 72,
    values: (_chart, splits, _axis, _space, step) => tickLabels(splits, step, zone),
  };
}

/** One axis per unit, the first on the left, the others on the right. */
export function valueAxes(lines: Line[], colours: ChartColours, font: string, axesMax: number): uPlot.Axis[] {
  const scales = [...new Map(lines.map((line) => [scaleOf(line), line])).values()];
  return scales.map((line, index) => {
    const axis: uPlot.Axis = {
      scale: scaleOf(line),
      show: index < axesMax,
      side: index === 0 ? 3 : 1,
      stroke: colours.text,
      font,
      grid: { show: index === 0, stroke: colours.grid, width: 1 },
      ticks: { stroke: colours.tick, width: 1, size: 4 },
      gap: 4,
      size: (_chart, values) => 18 + 7 * Math.max(2, ...(values ?? []).map((value) => value.length)),
    };
    if (line.type === "boolean") {
      // Averaged switches are the share of the time that they were true.
      const shares = lines.some((other) => other.type === "boolean" && other.step !== null);
      axis.splits = () => (shares ? [0, 0.5, 1] : [0, 1]);
      axis.values = () => (shares ? ["false", "50 %", "true"] : ["false", "true"]);
      return axis;
    }
    // The unit stands at the topmost tick: no turned text, no room lost.
    axis.values = (_chart, splits) => {
      const step = splits.length > 1 ? splits[1]! - splits[0]! : undefined;
      const labels = splits.map((value) => formatValue(value, step));
      if (line.unit !== "" && labels.length > 0) labels.push(`${labels.pop()} ${shortened(line.unit)}`);
      return labels;
    };
    axis.incrs = STEPS;
    return axis;
  });
}

/** Room above and below, and a flat line in the middle instead of at the edge. */
export function valueRange(_chart: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  if (min === max) {
    const pad = min === 0 ? 1 : Math.abs(min) * 0.1;
    return [min - pad, max + pad];
  }
  // Further apart than a double says: their middle half is drawn, and lines lead out of it.
  if (!Number.isFinite(max - min)) return [min / 2.5, max / 2.5];
  const pad = Math.min((max - min) * 0.06, Number.MAX_VALUE - (max - min));
  // A quantity that is never negative keeps its zero line where it belongs.
  return [min >= 0 && min - pad < 0 ? 0 : min - pad, max + pad];
}
