/** Which line is which, what it is at the cursor, and what it comes to over the range; a click hides a line. */
import { useMemo } from "preact/hooks";
import { formatTime, formatValue, zoneName } from "../app/format";
import type { Zone } from "../app/preferences";
import { lookOf } from "../chart/palette";
import type { Line } from "./series";
import { stepTime } from "./steps";

interface LegendProps {
  lines: Line[];
  hidden: ReadonlySet<string>;
  onToggle: (id: string) => void;
  /** Null: the newest value is shown. */
  cursorAt: number | null;
  zone: Zone;
  theme: "light" | "dark";
}

export function Legend({ lines, hidden, onToggle, cursorAt, zone, theme }: LegendProps) {
  return (
    <div class="legend">
      <table>
        <caption>
          {cursorAt === null ? (
            <span class="muted">Newest values</span>
          ) : (
            <>
              {formatTime(cursorAt, zone)} <span class="muted">{zoneName(zone, cursorAt)}</span>
            </>
          )}
        </caption>
        <thead>
          <tr>
            <th scope="col">Line</th>
            <th scope="col" class="number">
              Value
            </th>
            <th scope="col">At</th>
            <th scope="col" class="number">
              Band
            </th>
            <th scope="col" class="number wide-only">
              Least
            </th>
            <th scope="col" class="number wide-only">
              Greatest
            </th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <LegendRow
              key={line.id}
              line={line}
              hidden={hidden.has(line.id)}
              onToggle={onToggle}
              cursorAt={cursorAt}
              zone={zone}
              theme={theme}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  line: Line;
  hidden: boolean;
  onToggle: (id: string) => void;
  cursorAt: number | null;
  zone: Zone;
  theme: "light" | "dark";
}

function LegendRow({ line, hidden, onToggle, cursorAt, zone, theme }: RowProps) {
  const look = lookOf(line.index, theme, line.isBefore);
  const extremes = useMemo(() => extremesOf(line), [line]);
  // Without a cursor, what the sensor said last: the mean of a group that goes on is not its newest value. Of sums and
  // counts, the newest group.
  const index = useMemo(() => (cursorAt === null ? null : nearestIndex(line, cursorAt)), [line, cursorAt]);
  const latest = cursorAt === null ? line.newest : null;
  const place = cursorAt === null ? lastDrawn(line) : index;
  const value = latest?.value ?? (place === null ? null : (line.values[place] ?? null));
  const at = latest !== null ? formatTime(latest.at, zone) : place === null ? null : timeOf(line, place, zone);
  const low = index === null ? null : (line.lows?.[index] ?? null);
  const high = index === null ? null : (line.highs?.[index] ?? null);
  const text = (number: number | null) => (number === null ? "–" : shownValue(line, number));
  return (
    <tr class={hidden ? "is-hidden" : undefined}>
      <th scope="row">
        <button
          type="button"
          class="legend-toggle"
          aria-pressed={!hidden}
          onClick={() => onToggle(line.id)}
          title={hidden ? "Show" : "Hide"}
        >
          <svg class="swatch-line" viewBox="0 0 20 8" aria-hidden="true">
            <line
              x1="0"
              y1="4"
              x2="20"
              y2="4"
              stroke={look.stroke}
              stroke-width="2.5"
              stroke-dasharray={look.dash?.join(" ")}
            />
          </svg>
          <span class="name">{line.label}</span>
        </button>
      </th>
      <td class="number legend-value">
        {text(value)} {value !== null && line.unit !== "" && <span class="unit">{line.unit}</span>}
      </td>
      <td class="legend-time muted nowrap">{at ?? "–"}</td>
      {low !== null && high !== null ? (
        <td class="number muted legend-band">{`${text(low)} … ${text(high)}`}</td>
      ) : (
        <td class="number muted legend-band none">–</td>
      )}
      <td class="number muted wide-only">{text(extremes.low)}</td>
      <td class="number muted wide-only">{text(extremes.high)}</td>
    </tr>
  );
}

/** A value of a line in words; of a switch whose values are averages, the share of the time. */
export function shownValue(line: Line, value: number): string {
  if (line.type !== "boolean") return formatValue(value);
  if (value === 0 || value === 1) return String(value === 1);
  return `true ${formatValue(Number((value * 100).toPrecision(3)))} % of the time`;
}

/** A step has the name of its beginning, a point its time. */
function timeOf(line: Line, index: number, zone: Zone): string {
  const [step, start] = [line.step, line.starts?.[index]];
  return step === null || start === undefined ? formatTime(line.times[index]!, zone) : stepTime(start, step, zone);
}

function extremesOf(line: Line): { low: number | null; high: number | null } {
  let low: number | null = null;
  let high: number | null = null;
  for (const value of line.lows ?? line.values) if (value !== null && (low === null || value < low)) low = value;
  for (const value of line.highs ?? line.values) if (value !== null && (high === null || value > high)) high = value;
  return { low, high };
}

function lastDrawn(line: Line): number | null {
  const index = line.values.findLastIndex((value) => value !== null);
  return index < 0 ? null : index;
}

/** The line's point nearest to a time: lines of several sources rarely share their times. */
export function nearestIndex(line: Line, at: number): number | null {
  const { times } = line;
  if (times.length === 0) return null;
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < at) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && at - times[low - 1]! < times[low]! - at) low--;
  return line.values[low] === null ? null : low;
}
