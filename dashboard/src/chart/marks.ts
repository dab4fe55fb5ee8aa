/** Trigger marks: where a rule has fired, a dashed line with a flag on top. */
import uPlot from "uplot";

export interface ChartMark {
  at: number;
}

export function drawMarks(chart: uPlot, marks: readonly ChartMark[], colour: string): void {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.lineWidth = ratio;
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  for (const { at } of marks) {
    const x = Math.round(chart.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x + 9 * ratio, bbox.top + 4 * ratio);
    ctx.lineTo(x, bbox.top + 8 * ratio);
    ctx.fill();
  }
  ctx.restore();
}
