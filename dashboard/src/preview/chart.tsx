/** The last day of what a rule looks at, with the line that it compares with, and what has happened. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Rule } from "../api/rules";
import type { Source } from "../api/sources";
import { formatTime, formatValue, plural } from "../app/format";
import { useLoad } from "../app/load";
import { shownTheme, useZone } from "../app/preferences";
import { useStore } from "../app/store";
import { Plot } from "../chart/plot";
import { isNear, linesOf as endsOf } from "../chart/zones";
import type { Catalog } from "../explorer/catalog";
import { Legend } from "../explorer/legend";
import { DEFAULT_RANGE, notBehind, tidied, zoomedIn, zoomedOut, type Range } from "../explorer/range";
import { Waiting } from "../explorer/remarks";
import { linesOf, pointsOf, type Line } from "../explorer/series";
import { fieldId, type ExplorerState } from "../explorer/state";
import { useView } from "../explorer/view";
import { Button } from "../parts/button";
import { ErrorBox } from "../parts/forms";
import type { RuleDraft } from "../pages/rule-draft";
import { drawnGroups, extentOf, spokenChart, stateOf, zonesOf } from "./subject";
import { fetchSurroundings, within } from "./surroundings";

export interface RuleChartProps {
  draft: RuleDraft;
  sources: Source[];
  /** As it is stored; null of one that is not. */
  rule: Rule | null;
  /** When the draft would have fired; null where the chart is about what has happened. */
  firings: readonly number[] | null;
}

const NONE: ReadonlySet<string> = new Set();
/** While no field is chosen. */
const nothing = (range: Range): ExplorerState => ({
  fields: [],
  range,
  aggregation: "auto",
  groupBy: "auto",
  compare: null,
  live: false,
});
const PHONE_PX = 620;

export function RuleChart({ draft, sources, rule, firings }: RuleChartProps) {
  const zone = useZone();
  const theme = useStore(shownTheme);
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [range, setRange] = useState<Range>(DEFAULT_RANGE);
  const [cursorAt, setCursorAt] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(NONE);
  const toggle = (id: string) => setHidden(hidden.has(id) ? NONE : new Set([id]));
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const grouping = draft.inputs[0]?.grouping ?? "";
  const found = stateOf(draft, sources, range);
  const key = found === null ? "" : fieldId(found.fields[0]!);
  const series = JSON.stringify(found?.dimensions ?? null);
  const state = useMemo(() => found ?? nothing(range), [key, grouping, series, range]);
  // Sources are read again when they change: the chart asks again only when there is another field to draw.
  const known = useRef(sources);
  known.current = sources;
  const catalog = useMemo<Catalog>(
    () => ({ buckets: [], byId: new Map(known.current.map((source) => [source._id, source])) }),
    [key],
  );
  const loaded = useView(state, catalog, width, zone);
  const around = useLoad(
    key === "" ? null : `around ${rule?._id} ${rule?.lastTriggeredAt} ${key}`,
    (signal) => fetchSurroundings(rule, state.fields, signal),
    ["rules", "annotations"],
  );
  const { view } = loaded;
  const lines = useMemo(() => (view === null ? [] : linesOf(view, state.fields, catalog.byId)), [view, state]);
  const line = lines[0];
  const zones = useMemo(
    () => zonesOf(draft, sources),
    [draft.kind, draft.condition, draft.inputs, sources],
  );
  const { from, to } = view?.span ?? { from: 0, to: 0 };
  const times = firings ?? around.data?.triggers ?? [];
  const marks = useMemo(() => times.filter((at) => at >= from && at <= to).map((at) => ({ at })), [times, from, to]);
  const notes = useMemo(() => within(around.data?.notes ?? [], from, to), [around.data, from, to]);
  const height = width < PHONE_PX ? 200 : 240;
  const noun = firings === null ? "trigger" : "firing";
  const moment = (at: number) => formatTime(at, zone);
  const zoomed = range.kind === "absolute";
  const onKey = (pressed: string): boolean => {
    if (view === null) return false;
    if (pressed === "+" || pressed === "=") setRange(zoomedIn(view.span, cursorAt));
    else if (pressed === "-") setRange(zoomed ? zoomedOut(view.span, Date.now()) : DEFAULT_RANGE);
    else return false;
    return true;
  };

  return (
    <div class="chart-card rule-chart" ref={frame}>
      {loaded.error !== null && (
        <div class="actions">
          <ErrorBox error={loaded.error} />
          <Button small icon="refresh" onClick={loaded.reload}>
            Try again
          </Button>
        </div>
      )}
      <div
        class={loaded.slow ? "chart-frame waiting" : "chart-frame"}
        aria-busy={key !== "" && loaded.loading}
        style={{ minHeight: `${height}px` }}
      >
        {key === "" ? (
          <p class="chart-empty">
            {draft.inputs[0]?.field ? "Its field is no longer there." : "Choose a field to see its last day."}
          </p>
        ) : view !== null && line !== undefined ? (
          <Plot
            lines={lines}
            hidden={hidden}
            span={view.span}
            marks={marks}
            notes={notes}
            zones={zones}
            zone={zone}
            theme={theme}
            height={height}
            label={`Chart of ${line.label}, ${plural(pointsOf(line), "point")} from ${moment(from)} to ${moment(to)}`}
            onCursor={setCursorAt}
            onZoom={(span) => setRange({ kind: "absolute", ...tidied(notBehind(span, Math.max(Date.now(), span.to))) })}
            onKey={onKey}
          />
        ) : null}
        {loaded.slow && <Waiting />}
        {view !== null && key !== "" && line === undefined && <p class="chart-empty">A text cannot be drawn.</p>}
        {view !== null && line !== undefined && pointsOf(line) === 0 && (
          <p class="chart-empty">{zoomed ? "No points in this range." : "No points in the last day."}</p>
        )}
      </div>
      {line !== undefined && pointsOf(line) > 0 && (
        <Legend lines={lines} hidden={hidden} onToggle={toggle} cursorAt={cursorAt} zone={zone} theme={theme} />
      )}
      {line !== undefined && <Remarks line={line} zones={zones} grouping={grouping} inputs={draft.inputs.length} />}
      {around.error !== null && <p class="hint">Triggers and annotations could not be loaded.</p>}
      {zoomed && (
        <div class="actions">
          <Button small onClick={() => setRange(DEFAULT_RANGE)}>
            Show the last day
          </Button>
        </div>
      )}
      <p id="plot-keys" class="visually-hidden">
        {line === undefined ? "" : spokenChart(line, zones, marks.length, noun)} Left and right move the cursor, plus
        and minus zoom.
      </p>
    </div>
  );
}

interface RemarksProps {
  line: Line;
  zones: ReturnType<typeof zonesOf>;
  grouping: string;
  inputs: number;
}

function Remarks({ line, zones, grouping, inputs }: RemarksProps) {
  const remarks: string[] = [];
  const extent = extentOf(line);
  for (const at of endsOf(zones)) {
    if (extent === null || isNear(at, extent.low, extent.high)) continue;
    const unit = line.unit === "" ? "" : ` ${line.unit}`;
    remarks.push(`${formatValue(at)}${unit} lies far ${at > extent.high ? "above" : "below"} all that is drawn.`);
  }
  if (grouping !== "" && drawnGroups(grouping) === null)
    remarks.push(`The rule looks at ${grouping.replace(" ", " by ")}; the chart shows the values themselves.`);
  if (inputs > 1) remarks.push("The chart shows the first input.");
  if (remarks.length === 0) return null;
  return (
    <ul class="remarks">
      {remarks.map((remark) => (
        <li key={remark}>{remark}</li>
      ))}
    </ul>
  );
}
