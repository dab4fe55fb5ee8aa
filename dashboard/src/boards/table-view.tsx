/** The newest rows, a column for each series. */
import type { Panel, PanelAnswer } from "../api/boards";
import type { Value } from "../api/query";
import { formatTime, plural, zoneName } from "../app/format";
import type { Zone } from "../app/preferences";
import { TableFrame } from "../parts/page";
import { labelOf, seriesOf, type Naming } from "./answer";
import { levelOf, shown } from "./thresholds";

const ROWS_MAX = 200;

interface TableProps {
  panel: Panel;
  answer: PanelAnswer;
  naming: Naming;
  zone: Zone;
}

export function TableView({ panel, answer, naming, zone }: TableProps) {
  const all = seriesOf(answer);
  if (all.length === 0) return <p class="panel-note">No rows in this range.</p>;
  const rows = new Map<number, Map<string, Value>>();
  for (const series of all) {
    for (const [place, at] of series.times.entries()) {
      const row = rows.get(at) ?? new Map<string, Value>();
      rows.set(at, row.set(series.id, series.values[place] ?? null));
    }
  }
  const times = [...rows.keys()].sort((a, b) => b - a);
  return (
    <>
      <TableFrame label={panel.title === "" ? "Rows" : panel.title} capped>
        <thead>
          <tr>
            <th scope="col">Time ({zoneName(zone, times[0]!)})</th>
            {all.map((series) => (
              <th scope="col" class="number" key={series.id}>
                {labelOf(series, all, naming)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.slice(0, ROWS_MAX).map((at) => (
            <tr key={at}>
              <td class="nowrap">{formatTime(at, zone)}</td>
              {all.map((series) => {
                const value = rows.get(at)?.get(series.id) ?? null;
                const level = typeof value === "number" ? levelOf(value, panel.thresholds) : null;
                return (
                  <td key={series.id} class={level === null ? "number" : `number level-${level}`}>
                    {shown(value, panel)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </TableFrame>
      {times.length > ROWS_MAX && (
        <p class="hint">
          The newest {ROWS_MAX} of {plural(times.length, "row")}.
        </p>
      )}
    </>
  );
}
