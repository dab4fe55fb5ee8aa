/** The newest value of each series, large, with the level that it has reached. */
import type { Panel, PanelAnswer } from "../api/boards";
import { formatMoment } from "../app/format";
import type { Zone } from "../app/preferences";
import { labelOf, seriesOf, type Naming } from "./answer";
import { levelOf, shown } from "./thresholds";

/** More values than this are a table. */
const VALUES_MAX = 12;

interface StatProps {
  panel: Panel;
  answer: PanelAnswer;
  naming: Naming;
  zone: Zone;
}

export function StatView({ panel, answer, naming, zone }: StatProps) {
  const all = seriesOf(answer);
  if (all.length === 0) return <p class="panel-note">No value in this range.</p>;
  return (
    <ul class="stats">
      {all.slice(0, VALUES_MAX).map((series) => {
        const value = series.values.at(-1) ?? null;
        const level = typeof value === "number" ? levelOf(value, panel.thresholds) : null;
        return (
          <li key={series.id} class={level === null ? "stat" : `stat ${level}`}>
            <span class="stat-value">{shown(value, panel)}</span>
            {level !== null && <span class="visually-hidden">({level})</span>}
            <span class="stat-label">
              {labelOf(series, all, naming)}
              {/* Of one row for the range, the time is that of its beginning. */}
              {series.times.length > 1 && `, ${formatMoment(series.times.at(-1)!, Date.now(), zone)}`}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
