/** Whether a source sends, in a word. */
import type { Source } from "../api/sources";
import { formatMoment, formatTime, zoneName } from "../app/format";
import { useNow } from "../app/load";
import { useZone } from "../app/preferences";
import { Pill } from "../parts/show";
import { silentSince } from "./silence";

const NOW_MS = 5000;

/** The first two cells of a source's row: which it is, with `hint` below, and whether it sends. */
export function SourceCells({ source, hint }: { source: Source; hint: string | undefined }) {
  return (
    <>
      <td>
        <a class="name" href={`#/buckets/${source.bucketId}/sources/${source._id}`}>
          {source.name}
        </a>
        <div class="hint name">{hint}</div>
      </td>
      <td data-label="Status">
        <SourceStatus source={source} />
      </td>
    </>
  );
}

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
