/** Counts per hour as bars: one SVG path, so that ninety days are as quick as one. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { HourCount } from "../api/analytics";
import { formatCount, formatCompact, formatTime } from "../app/format";
import { useZone } from "../app/preferences";

const HOUR_MS = 3_600_000;
const HEIGHT = 100;
/** More bars than this would be thinner than a pixel on a phone; hours are then added up. */
const BARS_MAX = 360;

export interface Bar {
  at: number;
  hours: number;
  count: number;
}

/** Bars from `from` to `to`, empty hours included. */
export function barsOf(hours: HourCount[], from: number, to: number): Bar[] {
  const first = Math.floor(from / HOUR_MS);
  const last = Math.floor((to - 1) / HOUR_MS);
  const span = last - first + 1;
  const width = [1, 3, 6, 12, 24].find((size) => span / size <= BARS_MAX) ?? 24;
  const bars: Bar[] = Array.from({ length: Math.ceil(span / width) }, (_, index) => ({
    at: (first + index * width) * HOUR_MS,
    hours: width,
    count: 0,
  }));
  for (const { hour, count } of hours) {
    const bar = bars[Math.floor((Math.floor(Date.parse(hour) / HOUR_MS) - first) / width)];
    if (bar !== undefined) bar.count += count;
  }
  return bars;
}

interface HourBarsProps {
  label: string;
  hours: HourCount[];
  from: number;
  to: number;
  /** Without axis and readout, for cards. */
  spark?: boolean;
}

export function HourBars({ label, hours, from, to, spark }: HourBarsProps) {
  const zone = useZone();
  const frame = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const bars = useMemo(() => barsOf(hours, from, to), [hours, from, to]);
  const top = bars.reduce((most, bar) => Math.max(most, bar.count), 0);
  const total = bars.reduce((sum, bar) => sum + bar.count, 0);
  const path = bars
    .map((bar, index) => {
      if (bar.count === 0) return "";
      const height = Math.max(1.5, (bar.count / top) * HEIGHT);
      return `M${index + 0.12} ${HEIGHT}v-${height.toFixed(2)}h.76v${height.toFixed(2)}z`;
    })
    .join("");
  const shown = at === null ? undefined : bars[at];
  const peak = bars.find((bar) => bar.count === top);
  const unit = bars[0] !== undefined && bars[0].hours > 1 ? `${bars[0].hours} hours` : "hour";
  const summary =
    total === 0
      ? `${label}: none`
      : `${label}: ${formatCount(total)} in all, at most ${formatCount(top)} in one ${unit}, at ${formatTime(peak?.at ?? from, zone)}`;
  return (
    <div class={spark ? "bars spark" : "bars"} ref={frame}>
      {!spark && (
        <p class="bars-readout" aria-hidden="true">
          {shown === undefined ? (
            <>
              <strong>{formatCount(total)}</strong> in all, peak {formatCount(top)} per {unit}
            </>
          ) : (
            <>
              <strong>{formatCount(shown.count)}</strong> in the {unit} from {formatTime(shown.at, zone).slice(0, 16)}
            </>
          )}
        </p>
      )}
      <svg
        viewBox={`0 0 ${Math.max(1, bars.length)} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={summary}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const index = Math.floor(((event.clientX - box.left) / box.width) * bars.length);
          setAt(index >= 0 && index < bars.length ? index : null);
        }}
        onPointerLeave={() => setAt(null)}
      >
        <path class="bars-path" d={path} />
        {at !== null && !spark && <rect class="bars-cursor" x={at} y={0} width={1} height={HEIGHT} />}
      </svg>
      {!spark && (
        <div class="bars-axis" aria-hidden="true">
          <span>{formatTime(from, zone).slice(0, 16)}</span>
          <span>{formatCompact(top)} max</span>
          <span>{formatTime(to, zone).slice(0, 16)}</span>
        </div>
      )}
    </div>
  );
}
