/** States over time: a strip for each series, a colour for each state. */
import type { Panel, PanelAnswer } from "../api/boards";
import type { Value } from "../api/query";
import { STEP_SECONDS } from "../api/query";
import { formatMoment, formatTime } from "../app/format";
import { shownTheme, type Zone } from "../app/preferences";
import { useStore } from "../app/store";
import { lookOf } from "../chart/palette";
import type { Span } from "../explorer/range";
import { labelOf, seriesOf, stepOf, type Naming, type Series } from "./answer";
import { levelOf, shown } from "./thresholds";

const WIDTH = 1000;
/** Share of the time in which a switch must have been on to count as on. */
const MOSTLY = 0.5;

interface StatesProps {
  panel: Panel;
  answer: PanelAnswer;
  span: Span;
  naming: Naming;
  zone: Zone;
}

interface Stretch {
  from: number;
  to: number;
  state: string;
}

export function StatesView({ panel, answer, span, naming, zone }: StatesProps) {
  const theme = useStore(shownTheme);
  const all = seriesOf(answer);
  if (all.length === 0) return <p class="panel-note">No states in this range.</p>;
  const step = stepOf(answer);
  const stepMs = step === null ? null : STEP_SECONDS[step] * 1000;
  const strips = all.map((series) => ({ series, stretches: stretchesOf(series, panel, span, stepMs) }));
  const states = [...new Set(strips.flatMap(({ stretches }) => stretches.map(({ state }) => state)))].sort();
  const unit = WIDTH / Math.max(1, span.to - span.from);
  const fill = (state: string) => FIXED[state] ?? lookOf(states.indexOf(state), theme).stroke;
  return (
    <div class="states">
      {strips.map(({ series, stretches }) => (
        <div class="strip" key={series.id}>
          <span class="strip-label">{labelOf(series, all, naming)}</span>
          <svg
            viewBox={`0 0 ${WIDTH} 20`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`${labelOf(series, all, naming)}: ${stretches.at(-1)?.state ?? "unknown"} now; ${stretches.length} stretches`}
          >
            {stretches.map(({ from, to, state }) => (
              <rect key={from} x={(from - span.from) * unit} y="0" width={Math.max(1, (to - from) * unit)} height="20" fill={fill(state)}>
                <title>{spoken({ from, to, state }, zone)}</title>
              </rect>
            ))}
          </svg>
          <strong class="strip-now">{stretches.at(-1)?.state ?? "–"}</strong>
        </div>
      ))}
      <p class="bars-times">
        <span>{formatMoment(span.from, Date.now(), zone)}</span>
        <span>{formatMoment(span.to, Date.now(), zone)}</span>
      </p>
      <ul class="panel-legend">
        {states.map((state) => (
          <li key={state}>
            <span class="chip" aria-hidden="true" style={{ background: fill(state) }} />
            {state}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** States whose meaning everybody knows. */
const FIXED: Record<string, string> = {
  true: "var(--ok)",
  false: "var(--border-strong)",
  good: "var(--ok)",
  warning: "var(--warn)",
  critical: "var(--bad)",
};

/** The state that a value stands for: its level where there are thresholds. */
function stateOf(value: Value, isSwitch: boolean, panel: Panel): string {
  if (typeof value !== "number") return shown(value, panel);
  const level = levelOf(value, panel.thresholds);
  if (level !== null) return level;
  return isSwitch ? shown(value >= MOSTLY, panel) : shown(value, panel);
}

/** Each state holds until the next value, or as long as its step. */
export function stretchesOf(series: Series, panel: Panel, span: Span, stepMs: number | null): Stretch[] {
  // Of a switch, averages are shares of the time in which it was on.
  const isSwitch = stepMs !== null && series.values.every((value) => typeof value !== "number" || (value >= 0 && value <= 1));
  const stretches: Stretch[] = [];
  for (const [place, at] of series.times.entries()) {
    const next = series.times[place + 1] ?? span.to;
    const [from, until] = [Math.max(span.from, at), stepMs === null ? next : Math.min(next, at + stepMs)];
    const to = Math.min(span.to, until);
    if (to <= from) continue;
    const state = stateOf(series.values[place] ?? null, isSwitch, panel);
    const last = stretches.at(-1);
    if (last !== undefined && last.state === state && last.to >= from) last.to = to;
    else stretches.push({ from, to, state });
  }
  return stretches;
}

const spoken = ({ from, to, state }: Stretch, zone: Zone): string =>
  `${state}, ${formatTime(from, zone)} to ${formatTime(to, zone)}`;
