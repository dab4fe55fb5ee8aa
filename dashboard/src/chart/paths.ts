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

/**
 * Fills a band, and draws its outline. Each step is a shape of its own, at whole pixels so that no seam shows between
 * two: a browser that draws without a graphics card takes ten times as long for one shape of many spikes.
 */
export function drawBand(chart: uPlot, scale: string, lows: Column, highs: Column): void {
  const { x, y } = projection(chart, scale);
  const { ctx } = chart;
  const times = chart.data[0];
  const outline = new Path2D();
  let run: [x: number, high: number, low: number][] = [];
  const close = () => {
    const [start] = run;
    if (start === undefined) return;
    for (let index = 1; index < run.length; index++) {
      const [[left, high, low], [right, nextHigh, nextLow]] = [run[index - 1]!, run[index]!];
      ctx.beginPath();
      ctx.moveTo(left, high);
      ctx.lineTo(right, nextHigh);
      ctx.lineTo(right, nextLow);
      ctx.lineTo(left, low);
      ctx.fill();
    }
    outline.moveTo(start[0], start[1]);
    for (const [at, high] of run) outline.lineTo(at, high);
    for (const [at, , low] of run.reverse()) outline.lineTo(at, low);
    outline.closePath();
    run = [];
  };
  for (let index = 0; index < times.length; index++) {
    const [low, high] = [lows[index], highs[index]];
    if (low === undefined) continue;
    if (low === null || (high ?? null) === null) {
      close();
      continue;
    }
    const [at, top, bottom] = [Math.round(x(times[index]!)), y(high!), y(low)];
    const before = run.at(-1);
    if (before?.[0] === at) run[run.length - 1] = [at, Math.min(before[1], top), Math.max(before[2], bottom)];
    else run.push([at, top, bottom]);
  }
  close();
  ctx.stroke(outline);
}
