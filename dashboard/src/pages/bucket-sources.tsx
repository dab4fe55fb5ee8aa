/** The sources of a bucket. */
import { listSources } from "../api/sources";
import { formatCompact, formatSpan } from "../app/format";
import { useInterval, useLoad } from "../app/load";
import { LinkButton } from "../parts/button";
import { Empty, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago } from "../parts/show";
import { silentFirst } from "./silence";
import { SourceStatus } from "./source-status";

/** Counts and newest points are no change of a source; they come all the time. */
const RELOAD_MS = 10_000;

export function BucketSources({ bucketId }: { bucketId: string }) {
  const sources = useLoad(`sources ${bucketId}`, (signal) => listSources(bucketId, signal), ["sources"]);
  useInterval(RELOAD_MS, sources.reload);
  const create = `#/buckets/${bucketId}/sources/new`;
  return (
    <Section
      title="Sources"
      actions={
        <LinkButton href={create} icon="plus" small>
          New source
        </LinkButton>
      }
    >
      <WhenLoaded loaded={sources} what="sources">
        {(list) =>
          list.length === 0 ? (
            <Empty
              title="No sources yet"
              action={
                <LinkButton href={create} look="primary" icon="plus">
                  Declare the first
                </LinkButton>
              }
            >
              A sensor or an application, with the fields that it measures.
            </Empty>
          ) : (
            <TableFrame label="Sources">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Status</th>
                  <th scope="col">Fields</th>
                  <th scope="col" class="number">
                    Points
                  </th>
                  <th scope="col" class="number">
                    Interval
                  </th>
                  <th scope="col">Newest</th>
                </tr>
              </thead>
              <tbody>
                {silentFirst(list, Date.now()).map((source) => (
                  <tr key={source._id}>
                    <td>
                      <a class="name" href={`#/buckets/${bucketId}/sources/${source._id}`}>
                        {source.name}
                      </a>
                      <div class="hint">{source.type}</div>
                    </td>
                    <td>
                      <SourceStatus source={source} />
                    </td>
                    <td class="text muted">{Object.keys(source.schema).join(", ")}</td>
                    <td class="number">{formatCompact(source.stats.totalDataPoints)}</td>
                    <td class="number nowrap">
                      {source.stats.averageIntervalSeconds === null
                        ? "–"
                        : formatSpan(source.stats.averageIntervalSeconds)}
                    </td>
                    <td class="nowrap">
                      <Ago at={source.stats.lastDataPoint} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </TableFrame>
          )
        }
      </WhenLoaded>
    </Section>
  );
}
