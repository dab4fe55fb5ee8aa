/**
 * Fingers on the chart: one moves the range, two stretch it, and the moments under them stay under them. Moving up and
 * down is left to the page, which scrolls; a tap is uPlot's.
 */
import type { Span } from "../explorer/range";

interface Touching {
  /** What the chart shows now. */
  span: () => Span;
  /** While the fingers move; null takes the last one back. */
  onMove: (span: Span | null) => void;
  onEnd: (span: Span) => void;
}

/** Pixels that a finger moves before it is no tap. */
const TAP_PX_MAX = 8;

/** The span that has the given moments at these places of a plot. Pure. */
export function spanUnder(moments: readonly number[], places: readonly number[], width: number, span: Span): Span {
  const [first = 0, second] = moments;
  const [x = 0, y] = places;
  const apart = y === undefined ? 0 : y - x;
  const turned = second === undefined || apart === 0 || Math.sign(second - first) !== Math.sign(apart);
  const perPx = turned ? (span.to - span.from) / width : (second - first) / apart;
  const from = first - x * perPx;
  return { from, to: from + width * perPx };
}

/** Listens on the plotting area; the function it gives back ends that. */
export function followTouches(area: HTMLElement, { span, onMove, onEnd }: Touching): () => void {
  const fingers = new Map<number, number>();
  let began = { span: span(), places: [] as number[], moments: [] as number[] };
  let moved: Span | null = null;

  /** A finger more or less: what is shown now is where the gesture goes on from. */
  const begin = () => {
    const shown = moved ?? span();
    const places = [...fingers.values()].slice(0, 2);
    const perPx = (shown.to - shown.from) / area.clientWidth;
    began = { span: shown, places, moments: places.map((x) => shown.from + x * perPx) };
  };
  const placeOf = (event: PointerEvent) => event.clientX - area.getBoundingClientRect().left;

  const down = (event: PointerEvent) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, placeOf(event));
    begin();
  };
  const move = (event: PointerEvent) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, placeOf(event));
    const places = [...fingers.values()].slice(0, 2);
    if (moved === null && places.every((x, index) => Math.abs(x - began.places[index]!) < TAP_PX_MAX)) return;
    moved = spanUnder(began.moments, places, area.clientWidth, began.span);
    onMove(moved);
  };
  const up = (event: PointerEvent) => {
    if (!fingers.delete(event.pointerId)) return;
    if (fingers.size > 0) return begin();
    if (moved !== null) onEnd(moved);
    moved = null;
  };
  const cancel = (event: PointerEvent) => {
    if (!fingers.delete(event.pointerId)) return;
    fingers.clear();
    if (moved !== null) onMove(null);
    moved = null;
  };
  area.addEventListener("pointerdown", down);
  area.addEventListener("pointermove", move);
  area.addEventListener("pointerup", up);
  area.addEventListener("pointercancel", cancel);
  return () => {
    area.removeEventListener("pointerdown", down);
    area.removeEventListener("pointermove", move);
    area.removeEventListener("pointerup", up);
    area.removeEventListener("pointercancel", cancel);
  };
}
