/** Whether the sources send: silent ones first, of all buckets. */
import type { Bucket } from "../api/buckets";
import type { Source } from "../api/sources";
import { plural } from "../app/format";
import { useNow } from "../app/load";
import { Section, TableFrame } from "../parts/page";
import { Ago } from "../parts/show";
import { bySilence, silentSince } from "./silence";
import { SourceCells } from "./source-status";

const NOW_MS = 5000;
/** As many as are read at a glance; where all is well, fewer will do. */
const ROWS_MAX = 8;
const ROWS_LEAST = 4;

export function OverviewSources({ sources, buckets }: { sources: Source[]; buckets: Bucket[] }) {
  const now = useNow(NOW_MS);
  if (sources.length === 0) return null;
  const silent = sources.filter((source) => silentSince(source, now) !== null).length;
  const shown = [...sources].sort(bySilence(now)).slice(0, Math.min(ROWS_MAX, Math.max(ROWS_LEAST, silent)));
  const names = new Map(buckets.map((bucket) => [bucket._id, bucket.name]));
  const more = sources.length - shown.length;
  return (
    <Section
      title="Sources"
      note={silent === 0 ? "No source is silent." : `${plural(silent, "source")} silent.`}
    >
      <TableFrame label="Sources" stacked>
        <thead>
          <tr>
            <th scope="col">Source</th>
            <th scope="col">Status</th>
            <th scope="col">Newest</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((source) => (
            <tr key={source._id}>
              <SourceCells source={source} hint={names.get(source.bucketId)} />
              <td class="nowrap" data-label="Newest">
                <Ago at={source.stats.lastDataPoint} />
              </td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
      {more > 0 && <p class="hint">{plural(more, "more source")} in the buckets below.</p>}
    </Section>
  );
}
