/** Whether a source sends, in a word. */
import type { Source } from "../api/sources";
import { formatMoment, formatTime, zoneName } from "../app/format";
import { useNow } from "../app/load";
import { useZone } from "../app/preferences";
import { Pill } from "../parts/show";
import { silentSince } from "./silence";

const NOW_MS = 5000;

export function SourceStatus({ source }: { source: Source }) {
  const now = useNow(NOW_MS);
  const zone = useZone();
  if (source.status !== "active") return <Pill tone="idle">{source.status}</Pill>;
  if (source.stats.totalDataPoints === 0) return <Pill tone="idle">no points yet</Pill>;
  const since = silentSince(source, now);
  if (since === null) return <Pill tone="ok">active</Pill>;
  return (
    <span title={`${formatTime(since, zone)} ${zoneName(zone, since)}`}>
      <Pill tone="warn">silent since {formatMoment(since, now, zone)}</Pill>
    </span>
  );
}
