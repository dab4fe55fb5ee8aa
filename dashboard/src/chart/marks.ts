/** Trigger marks: where a rule has fired, a dashed line with a flag on top. */
import uPlot from "uplot";

export interface ChartMark {
  at: number;
}

/** Closer together than this on average, marks are flags alone: their lines would hide the data. */
const LINE_PX_MIN = 20;

export function drawMarks(chart: uPlot, marks: readonly ChartMark[], colour: string): void {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.lineWidth = ratio;
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  const lined = marks.length * LINE_PX_MIN * ratio <= bbox.width;
  for (const { at } of marks) {
    const x = Math.round(chart.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + (lined ? bbox.height : 8 * ratio));
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x + 9 * ratio, bbox.top + 4 * ratio);
    ctx.lineTo(x, bbox.top + 8 * ratio);
    ctx.fill();
  }
  ctx.restore();
}
