/**
 * Paths of lines and bands. uPlot's own break a line by a clip around each gap, and a band by two strokes and another
 * clip; with many gaps those clips cost several times what all lines do. These break where a value is missing.
 */
import uPlot from "uplot";

type Column = ArrayLike<number | null | undefined>;

/** From values to pixels of the canvas; all scales are linear. */
function projection(chart: uPlot, scale: string): { x: (at: number) => number; y: (value: number) => number } {
  const { left, top, width, height } = chart.bbox;
  const [across, up] = [chart.scales["x"]!, chart.scales[scale]!];
  const [from, to] = [across.min ?? 0, across.max ?? 1];
  const [low, high] = [up.min ?? 0, up.max ?? 1];
  return {
    x: (at) => left + ((at - from) / (to - from)) * width,
    y: (value) => top + (1 - (value - low) / (high - low)) * height,
  };
}

export const linePaths: uPlot.Series.PathBuilder = (chart, series, first, last) => {
  const { x, y } = projection(chart, chart.series[series]!.scale!);
  const [times, values] = [chart.data[0], chart.data[series]!];
  const stroke = new Path2D();
  let open = false;
  // One more on each side, so that the line runs out of the range instead of ending before it.
  for (let index = Math.max(0, first - 1); index <= Math.min(times.length - 1, last + 1); index++) {
    const value = values[index];
    // Undefined is a time of another line.
    if (value === undefined) continue;
    if (value === null) open = false;
    else if (open) stroke.lineTo(x(times[index]!), y(value));
    else {
      stroke.moveTo(x(times[index]!), y(value));
      open = true;
    }
  }
  return { stroke, fill: null, clip: null, band: null, flags: 0 };
};

/** The stretches between least and greatest, each a closed shape. */
export function bandPath(chart: uPlot, scale: string, lows: Column, highs: Column): Path2D {
  const { x, y } = projection(chart, scale);
  const times = chart.data[0];
  const path = new Path2D();
  let run: number[] = [];
  const close = () => {
    const [start] = run;
    if (start === undefined) return;
    path.moveTo(x(times[start]!), y(highs[start]!));
    for (const index of run) path.lineTo(x(times[index]!), y(highs[index]!));
    for (const index of run.reverse()) path.lineTo(x(times[index]!), y(lows[index]!));
    path.closePath();
    run = [];
  };
  for (let index = 0; index < times.length; index++) {
    if (lows[index] === undefined) continue;
    if (lows[index] === null || (highs[index] ?? null) === null) close();
    else run.push(index);
  }
  close();
  return path;
}
