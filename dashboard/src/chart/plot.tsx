/**
 * The chart: uPlot on a canvas, its data and its look from props, cursor and zoom out to callbacks. It knows lines and
 * marks and notes; where they come from is the explorer's business.
 */
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clockOf } from "../app/clock";
import type { Zone } from "../app/preferences";
import { aligned, type Column, type Line } from "../explorer/series";
import type { Span } from "../explorer/range";
import { scaleOf, timeAxis, valueAxes, valueRange, type ChartColours } from "./axes";
import { drawMarks, type ChartMark } from "./marks";
import { drawNotes, placeNotes, type ChartNote } from "./notes";
import { lookOf } from "./palette";
import { drawZones, rangeWith, type Zone as FiringZone } from "./zones";
import { drawBand, linePaths } from "./paths";
import { followTouches } from "./touch";

export interface PlotProps {
  lines: Line[];
  /** Ids of lines that the legend has switched off. */
  hidden: ReadonlySet<string>;
  span: Span;
  marks: readonly ChartMark[];
  notes: readonly ChartNote[];
  /** Where the values of the first line make a rule fire. */
  zones?: readonly FiringZone[];
  zone: Zone;
  theme: "light" | "dark";
  height: number;
  label: string;
  onCursor: (at: number | null) => void;
  onZoom: (span: Span) => void;
  onKey: (key: string) => boolean;
}

/** Pixels below which a drag is taken for a click. */
const DRAG_PX_MIN = 6;
const PHONE_PX = 620;
/** With four axes, little of this would be left for the lines. */
const NARROW_PX = 900;
const LINE_PX = 1.5;
const BAND_EDGE_PX = 0.75;
/** A line with more values to a pixel than this is drawn a hair thin: many spikes are told apart, and drawn at once. */
const DENSE_PER_PX = 1 / 2;
/** Half of the longest label of the time axis. */
const LAST_LABEL_PX = 36;
const NO_ZONES: readonly FiringZone[] = [];

export function Plot(props: PlotProps) {
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const { lines, hidden, span, marks, notes, zones = NO_ZONES, zone, theme, height } = props;

  const table = useMemo(() => aligned(lines), [lines]);
  /** The moment of the cursor of the chart before this one: zooming in may need a new chart. */
  const held = useRef<number | null>(null);
  const shown = useRef(table);
  shown.current = table;
  // A new chart only when its parts differ; new data goes into the one there is. Layout effects: a key pressed after the
  // view has changed never moves the cursor over the data before.
  const shape = JSON.stringify([
    lines.map((line) => [line.id, line.index, line.unit, line.lows !== null, line.step === null]),
    zone,
    theme,
  ]);

  useLayoutEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const made = new uPlot(optionsOf(element, latest, shown, held), dataOf(table), element);
    chart.current = made;
    const endTouches = followTouches(made.over, {
      span: () => latest.current.span,
      onMove: (touched) => {
        const { from: min, to: max } = touched ?? latest.current.span;
        made.setScale("x", { min, max });
      },
      onEnd: (touched) => latest.current.onZoom(touched),
    });
    const resize = new ResizeObserver(() => {
      if (element.clientWidth > 0 && element.clientWidth !== made.width) {
        made.setSize({ width: element.clientWidth, height: latest.current.height });
      }
    });
    resize.observe(element);
    return () => {
      resize.disconnect();
      endTouches();
      held.current = momentOf(made);
      made.destroy();
      chart.current = null;
    };
  }, [shape]);

  useLayoutEffect(() => {
    const made = chart.current;
    if (made === null) return;
    // No `batch`: uPlot draws once for all that this task changes, and a batch would draw before the marks are in.
    let series = 1;
    for (const { line, lows } of table.columns) {
      const show = !hidden.has(line.id);
      const dense = line.values.length > DENSE_PER_PX * made.over.clientWidth;
      made.series[series]!.width = dense ? 1 / devicePixelRatio : LINE_PX;
      for (let n = 0; n < (lows === null ? 1 : 3); n++, series++) {
        if (made.series[series]?.show !== show) made.setSeries(series, { show });
      }
    }
    made.setData(dataOf(table), true);
  }, [table, hidden, span.from, span.to, zones, shape]);

  useLayoutEffect(() => chart.current?.redraw(false), [marks, notes]);
  useLayoutEffect(() => chart.current?.setSize({ width: chart.current.width, height }), [height]);

  return (
    <div
      class="plot"
      tabIndex={0}
      role="group"
      aria-label={props.label}
      aria-describedby="plot-keys"
      style={{ minHeight: `${height}px` }}
      onKeyDown={(event) => {
        // Many keyboards have brackets behind AltGr, which some systems send as Ctrl and Alt.
        const typed = event.getModifierState("AltGraph");
        if (!typed && (event.ctrlKey || event.metaKey || event.altKey)) return;
        if (moveCursor(chart.current, event.key, event.shiftKey) || props.onKey(event.key)) event.preventDefault();
      }}
    >
      <div ref={holder} />
    </div>
  );
}

type Table = ReturnType<typeof aligned>;

const momentOf = (chart: uPlot): number | null => chart.data[0][chart.cursor.idx ?? -1] ?? null;

function optionsOf(
  element: HTMLElement,
  latest: { current: PlotProps },
  shown: { current: Table },
  held: { current: number | null },
): uPlot.Options {
  const { lines, zone, theme, height } = latest.current;
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const colours: ChartColours = {
    text: token("--text-muted"),
    grid: token("--chart-grid"),
    tick: token("--border-strong"),
    mark: token("--bad"),
  };
  const noteColour = token("--accent");
  const font = `11px ${token("--font")}`;
  const width = element.clientWidth || 320;
  const axesMax = width < PHONE_PX ? 2 : width < NARROW_PX ? 3 : 4;
  const scales: uPlot.Scales = {
    x: { time: true, range: () => [latest.current.span.from, latest.current.span.to] },
    switch: { range: [-0.15, 1.15] },
  };
  for (const line of lines) {
    if (line.type === "boolean") continue;
    const range: uPlot.Range.Function =
      line === lines[0]
        ? (made, min, max) => valueRange(made, ...rangeWith(latest.current.zones ?? NO_ZONES, min, max))
        : valueRange;
    scales[scaleOf(line)] = { range };
  }
  return {
    width,
    height,
    ms: 1,
    tzDate: (at) => dateIn(at, zone),
    scales,
    axes: [timeAxis(colours, font, zone), ...valueAxes(lines, colours, font, axesMax)],
    series: [
      {},
      ...lines.flatMap((line, place) => seriesOf(line, theme, () => shown.current.columns[place]?.dots ?? [])),
    ],
    legend: { show: false },
    // Without an axis at the right, half of the last time stands beyond the plot.
    padding: [12, (_chart, _side, axes) => (axes[1] ? 8 : LAST_LABEL_PX), 0, 0],
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false, dist: DRAG_PX_MIN },
      points: { size: 7 },
      // Two fingers and a scroll stay with the page; a double click zooms out, as the toolbar does.
      bind: { dblclick: () => () => (latest.current.onKey("-"), null) },
    },
    hooks: {
      ready: [
        (made) => {
          const [at, { from, to }] = [held.current, latest.current.span];
          if (at === null || at < from || at > to) latest.current.onCursor(null);
          else made.setCursor({ left: made.valToPos(at, "x"), top: 1 });
        },
      ],
      setCursor: [(made) => latest.current.onCursor(momentOf(made))],
      setSelect: [
        (made) => {
          const { left, width: selected } = made.select;
          if (selected < DRAG_PX_MIN) return;
          const from = Math.round(made.posToVal(left, "x"));
          const to = Math.round(made.posToVal(left + selected, "x"));
          made.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          latest.current.onZoom({ from, to });
        },
      ],
      drawAxes: [
        (made) => {
          const [first] = lines;
          if (first !== undefined) drawZones(made, scaleOf(first), latest.current.zones ?? NO_ZONES, colours.mark);
          drawBands(made, lines, shown.current, theme);
        },
      ],
      draw: [
        (made) => {
          drawNotes(made, latest.current.notes, noteColour);
          drawMarks(made, latest.current.marks, colours.mark);
          placeNotes(made, latest.current.notes);
        },
      ],
    },
  };
}

/** A date whose local parts are what the zone's clock shows: by them uPlot finds the places of its ticks. */
function dateIn(at: number, zone: Zone): Date {
  if (zone === "local") return new Date(at);
  if (zone === "utc") return uPlot.tzDate(new Date(at), "Etc/UTC");
  const { year, month, day, hour, minute, second, ms } = clockOf(at, zone);
  return new Date(year, month, day, hour, minute, second, ms);
}

function seriesOf(line: Line, theme: "light" | "dark", dots: () => number[]): uPlot.Series[] {
  const look = lookOf(line.index, theme, line.isBefore);
  const main: uPlot.Series = {
    scale: scaleOf(line),
    stroke: look.stroke,
    width: LINE_PX,
    ...(look.dash === undefined ? {} : { dash: look.dash }),
    // Where all points have room, all have a dot; else those that the stroke would not show.
    points: { size: 5, fill: look.stroke, filter: (_chart, _series, all) => (all ? null : dots()) },
    spanGaps: false,
  };
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  main.paths = line.type === "boolean" && line.step === null && stepped !== undefined ? stepped : linePaths;
  if (line.lows === null) return [main];
  // Not drawn as lines: with them the scale has room for the band.
  const edge: uPlot.Series = { scale: scaleOf(line), paths: () => null, points: { show: false } };
  return [main, { ...edge }, { ...edge }];
}

/** Under all lines. */
function drawBands(chart: uPlot, lines: Line[], { columns }: Table, theme: "light" | "dark"): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = BAND_EDGE_PX * devicePixelRatio;
  ctx.lineJoin = "bevel";
  let series = 1;
  for (const [index, line] of lines.entries()) {
    const [column, shown] = [columns[index], chart.series[series]?.show === true];
    series += line.lows === null ? 1 : 3;
    if (!shown || column === undefined || column.lows === null || column.highs === null) continue;
    const look = lookOf(line.index, theme, line.isBefore);
    ctx.fillStyle = look.band;
    ctx.strokeStyle = look.edge;
    drawBand(chart, scaleOf(line), column.lows, column.highs);
  }
  ctx.restore();
}

function dataOf({ times, columns }: Table): uPlot.AlignedData {
  const series: Column[] = columns.flatMap(({ values, lows, highs }) =>
    lows === null || highs === null ? [values] : [values, lows, highs],
  );
  return [times, ...series] as uPlot.AlignedData;
}

/** Left and right walk from point to point, with Shift ten at once; Home and End go to the ends. */
function moveCursor(chart: uPlot | null, key: string, far: boolean): boolean {
  if (chart === null || !["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) return false;
  const last = chart.data[0].length - 1;
  if (last < 0) return false;
  const step = far ? 10 : 1;
  const at = chart.cursor.idx ?? last;
  const index =
    key === "Home" ? 0 : key === "End" ? last : Math.min(last, Math.max(0, at + (key === "ArrowLeft" ? -step : step)));
  chart.setCursor({ left: chart.valToPos(chart.data[0][index]!, "x"), top: 1 });
  return true;
}
