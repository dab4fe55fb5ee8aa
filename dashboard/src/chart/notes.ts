/**
 * Notes on the chart: a line where each begins, and a band as long as it lasts. The text is in a button at the top of the
 * line, which the mouse and the keyboard find.
 */
import type uPlot from "uplot";

export interface ChartNote {
  id: string;
  at: number;
  /** The end of one that lasts. */
  until: number | null;
  text: string;
  /** What it is called; an annotation when absent. */
  called?: string;
}

const BAND_OPACITY = 0.12;
/** From here to the right edge there may be no room for the text: it stands at the left of its line. */
const TEXT_LEFT_FROM = 0.6;

export function drawNotes(chart: uPlot, notes: readonly ChartNote[], colour: string): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  for (const { at, until } of notes) {
    const x = Math.round(chart.valToPos(at, "x", true));
    if (until !== null) {
      ctx.globalAlpha = BAND_OPACITY;
      ctx.fillRect(x, bbox.top, chart.valToPos(until, "x", true) - x, bbox.height);
      ctx.globalAlpha = 1;
    }
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Puts a button with the text over each note that has a place on the chart. One that is there stays, with its focus. */
export function placeNotes(chart: uPlot, notes: readonly ChartNote[]): void {
  const width = chart.over.clientWidth;
  const present = new Map<string, HTMLElement>();
  for (const element of chart.over.querySelectorAll<HTMLElement>(".plot-note")) {
    present.set(element.dataset["note"] ?? "", element);
  }
  for (const { id, at, until, text, called = "Annotation" } of notes) {
    const [left, right] = [chart.valToPos(at, "x"), chart.valToPos(until ?? at, "x")];
    if (right < 0 || left > width) continue;
    const element = present.get(id) ?? made(chart, id);
    present.delete(id);
    // One that has begun earlier has its button at the edge.
    const x = Math.max(0, left);
    element.style.left = `${Math.round(x)}px`;
    element.classList.toggle("leftward", x > width * TEXT_LEFT_FROM);
    element.setAttribute("aria-label", `${called}: ${text}`);
    element.firstElementChild!.textContent = text;
  }
  for (const element of present.values()) element.remove();
}

function made(chart: uPlot, id: string): HTMLElement {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "plot-note";
  element.dataset["note"] = id;
  element.append(document.createElement("span"));
  // A press on it begins no zoom.
  element.addEventListener("mousedown", (event) => event.stopPropagation());
  chart.over.append(element);
  return element;
}
