/** A bar for each value, those of one step beside each other. */
import type { Panel, PanelAnswer } from "../api/boards";
import { formatMoment, formatTime } from "../app/format";
import { shownTheme, type Zone } from "../app/preferences";
import { useStore } from "../app/store";
import { lookOf } from "../chart/palette";
import type { Span } from "../explorer/range";
import { labelOf, placesOfSeries, seriesOf, type Naming, type Series } from "./answer";
import { levelOf, shown } from "./thresholds";

const [WIDTH, HEIGHT] = [1000, 300];
/** Of the time between two steps, so much is bar. */
const FILLED = 0.8;
const BAR_MIN = 0.6;
/** Colours follow from the names alone. */
const FIRST: ReadonlyMap<string, number> = new Map();

interface BarsProps {
  panel: Panel;
  answer: PanelAnswer;
  span: Span;
  naming: Naming;
  zone: Zone;
}

const numbersOf = ({ values }: Series): number[] =>
  values.map((value) => (typeof value === "number" ? value : value === true ? 1 : 0));

export function BarsView({ panel, answer, span, naming, zone }: BarsProps) {
  const theme = useStore(shownTheme);
  const all = seriesOf(answer).filter(({ values }) => values.some((value) => typeof value !== "string"));
  if (all.length === 0) return <p class="panel-note">No values in this range.</p>;
  const numbers = all.flatMap(numbersOf);
  const [top, bottom] = [Math.max(0, ...numbers), Math.min(0, ...numbers)];
  const height = top - bottom || 1;
  const y = (value: number) => ((top - value) / height) * HEIGHT;
  const times = [...new Set(all.flatMap((series) => series.times))].sort((a, b) => a - b);
  const steps = times.slice(1).map((at, index) => at - times[index]!);
  const step = steps.length === 0 ? span.to - span.from : Math.min(...steps);
  const from = Math.min(span.from, times[0]!);
  const unit = WIDTH / Math.max(1, Math.max(span.to, times.at(-1)! + step) - from);
  const width = Math.max(BAR_MIN, (step * unit * FILLED) / all.length);
  const places = placesOfSeries(all, FIRST);
  const colourOf = (series: Series) => lookOf(places.get(series.id) ?? 0, theme).stroke;
  const label = (series: Series) => labelOf(series, all, naming);
  const newest = all.map((series) => `${label(series)} ${shown(series.values.at(-1) ?? null, panel)}`).join(", ");
  return (
    <>
      <div class="bars-frame">
        <span class="bars-value">{shown(top, panel)}</span>
        <span class="bars-value middle">{shown((top + bottom) / 2, panel)}</span>
        <svg
          class="panel-bars"
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${panel.title === "" ? "Bars" : panel.title}: newest ${newest}`}
        >
          {all.map((series, place) =>
            numbersOf(series).map((value, index) => {
              const at = series.times[index]!;
              const level = levelOf(value, panel.thresholds);
              return (
                <rect
                  key={`${series.id} ${at}`}
                  class={level === null ? undefined : `fill-${level}`}
                  x={(at - from) * unit + place * width}
                  y={y(Math.max(0, value))}
                  width={width}
                  height={Math.max(value === 0 ? 0 : 1, y(Math.min(0, value)) - y(Math.max(0, value)))}
                  fill={colourOf(series)}
                >
                  <title>{`${label(series)}, ${formatTime(at, zone)}: ${shown(value, panel)}`}</title>
                </rect>
              );
            }),
          )}
          <line x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} class="bars-middle" />
          <line x1="0" x2={WIDTH} y1={y(0)} y2={y(0)} class="bars-zero" />
        </svg>
      </div>
      <p class="bars-times">
        <span>{formatMoment(span.from, Date.now(), zone)}</span>
        <span>{formatMoment(span.to, Date.now(), zone)}</span>
      </p>
      <ul class="panel-legend">
        {all.map((series) => (
          <li key={series.id}>
            <span class="chip" aria-hidden="true" style={{ background: colourOf(series) }} />
            {label(series)} <strong>{shown(series.values.at(-1) ?? null, panel)}</strong>
          </li>
        ))}
      </ul>
    </>
  );
}
