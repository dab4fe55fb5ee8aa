/** A panel: its title, what it shows, and how it stands. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { BoardContent, Panel } from "../api/boards";
import { ApiError } from "../api/client";
import { formatTime, sentence } from "../app/format";
import { shownTheme, timezoneOf, type Zone } from "../app/preferences";
import { useStore } from "../app/store";
import { Plot } from "../chart/plot";
import { lookOf } from "../chart/palette";
import { nearestIndex } from "../explorer/legend";
import type { Span } from "../explorer/range";
import { placesIn, type Line } from "../explorer/series";
import { chartLines, type Naming } from "./answer";
import { BarsView } from "./bars-view";
import { RulesView } from "./rules-view";
import { StatView } from "./stat-view";
import type { BoardState } from "./state";
import { StatesView } from "./states-view";
import { TableView } from "./table-view";
import { ofMean, shown } from "./thresholds";
import { useNear, usePanel, type Access, type PanelData } from "./use-panel";

export interface PanelProps {
  board: BoardContent;
  index: number;
  state: BoardState;
  access: Access;
  /** By whose clock times are shown and days begin, unless the panel's query has a time zone of its own. */
  zone: Zone;
  round: number;
  /** The name of a source; null where nobody may know it. */
  sourceName: (id: string) => string | null;
  onZoom: (span: Span) => void;
}

/** Below this a chart has no room for its axes. */
const PLOT_PX_MIN = 80;
/** A legend of one row. */
const LEGEND_PX = 28;
/** Fewer lines than this are seen at once. */
const LEGEND_LINES = 6;
const NONE: ReadonlySet<string> = new Set();

export function PanelBody(props: PanelProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const near = useNear(frame);
  const { board, index } = props;
  const panel = board.panels[index]!;
  const own = panel.query["timezone"];
  const zone = typeof own === "string" && own !== "" ? own : props.zone;
  const asked = { ...props, timezone: timezoneOf(zone), widthPx: size.width };
  const { data, error, loading } = usePanel(asked, near, props.round);
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="panel-body" ref={frame} aria-busy={loading}>
      {error !== null && <PanelError error={error} stale={data !== null} />}
      {data === null && error === null && <p class="panel-note">{near ? "Loading…" : ""}</p>}
      {data !== null && <Shown {...props} zone={zone} panel={panel} data={data} size={size} />}
    </div>
  );
}

/** `stale`: what it showed before is still there. */
function PanelError({ error, stale }: { error: Error; stale: boolean }) {
  const missing = error instanceof ApiError && error.status === 404;
  return (
    <p class="panel-note fault" role="status">
      {missing ? "What this panel asks for is not here: its bucket or data source is unknown." : sentence(error.message)}
      {stale && " What is shown is older."}
    </p>
  );
}

interface ShownProps extends PanelProps {
  panel: Panel;
  data: PanelData;
  size: { width: number; height: number };
}

function Shown(props: ShownProps) {
  const { panel, data, access, zone } = props;
  if (data.kind === "missing") return <p class="panel-note">Choose a value of “{data.variable}” above.</p>;
  if (data.kind === "rules") return <RulesView rules={data.rules} linked={access.kind === "own"} />;
  const naming: Naming = { source: props.sourceName, unit: panel.unit ?? "" };
  switch (panel.kind) {
    case "stat":
      return <StatView panel={panel} answer={data.answer} naming={naming} zone={zone} />;
    case "table":
      return <TableView panel={panel} answer={data.answer} naming={naming} zone={zone} />;
    case "states":
      return <StatesView panel={panel} answer={data.answer} span={data.span} naming={naming} zone={zone} />;
    case "bars":
      return <BarsView panel={panel} answer={data.answer} span={data.span} naming={naming} zone={zone} />;
    case "lines":
    case "rules":
      return <LinesView {...props} data={data} naming={naming} />;
  }
}

type LinesProps = ShownProps & { data: PanelData & { kind: "rows" }; naming: Naming };

function LinesView({ panel, data, size, naming, zone, onZoom, sourceName }: LinesProps) {
  const theme = useStore(shownTheme);
  const [cursorAt, setCursorAt] = useState<number | null>(null);
  const places = useRef<ReadonlyMap<string, number>>(new Map());
  const lines = useMemo(() => {
    const made = chartLines(data.answer, naming, places.current);
    places.current = placesIn(made);
    return made;
  }, [data, naming.unit, sourceName]);
  const legend = useRef<HTMLUListElement>(null);
  // It has as many rows as its lines need, which are known when it is there.
  const [legendHeight, setLegendHeight] = useState(LEGEND_PX);
  useLayoutEffect(() => setLegendHeight(legend.current?.offsetHeight ?? LEGEND_PX), [lines, size.width, size.height]);
  const { span } = data;
  if (lines.length === 0) return <p class="panel-note">No values in this range.</p>;
  const height = Math.max(PLOT_PX_MIN, size.height - legendHeight - 4);
  const title = panel.title === "" ? "Chart" : panel.title;
  return (
    <>
      <Plot
        lines={lines}
        hidden={NONE}
        span={span}
        marks={[]}
        notes={[]}
        zone={zone}
        theme={theme}
        height={height}
        label={`${title}: ${lines.map(({ label }) => label).join(", ")}, from ${formatTime(span.from, zone)} to ${formatTime(span.to, zone)}`}
        onCursor={setCursorAt}
        onZoom={onZoom}
        onKey={() => false}
      />
      {/* Of many lines it scrolls, by keyboard too. */}
      <ul class="panel-legend capped" ref={legend} tabIndex={lines.length > LEGEND_LINES ? 0 : undefined} aria-label="Legend">
        {lines.map((line) => (
          <li key={line.id}>
            <span class="chip" aria-hidden="true" style={{ background: lookOf(line.index, theme).stroke }} />
            {line.label} <strong>{shown(legendValue(line, cursorAt, panel), panel)}</strong>
          </li>
        ))}
      </ul>
    </>
  );
}

/** As the panel's decimals say it; without them, no more digits of a mean than are read. */
function legendValue(line: Line, at: number | null, { decimals }: Panel): number | boolean | null {
  const value = valueAt(line, at);
  return typeof value === "number" && line.step !== null && decimals === null ? ofMean(value) : value;
}

/** The value at a moment; without one, the newest. */
function valueAt(line: Line, at: number | null): number | boolean | null {
  const index = at === null ? line.values.findLastIndex((value) => value !== null) : nearestIndex(line, at);
  const value = index === null ? null : (line.values[index] ?? null);
  return line.type === "boolean" && line.step === null && value !== null ? value > 0 : value;
}
