/** The sources of a bucket. */
import { listSources, type Source } from "../api/sources";
import { formatCompact, formatSpan } from "../app/format";
import { useInterval, useLoad } from "../app/load";
import { IfMay } from "../app/role";
import { LinkButton } from "../parts/button";
import { byMoment, byNumber, byText, Listed, useListing } from "../parts/listing";
import { Empty, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago } from "../parts/show";
import { bySilence } from "./silence";
import { SourceCells } from "./source-status";

/** Counts and newest points are no change of a source; they come all the time. */
const RELOAD_MS = 10_000;

export function BucketSources({ bucketId }: { bucketId: string }) {
  const sources = useLoad(`sources ${bucketId}`, (signal) => listSources(bucketId, signal), ["sources"]);
  useInterval(RELOAD_MS, sources.refresh);
  const create = `#/buckets/${bucketId}/sources/new`;
  return (
    <Section
      title="Sources"
      actions={
        <IfMay>
          <LinkButton href={create} icon="plus" small>
            New source
          </LinkButton>
        </IfMay>
      }
    >
      <WhenLoaded loaded={sources} what="sources">
        {(list) =>
          list.length === 0 ? (
            <Empty
              title="No sources yet"
              action={
                <IfMay>
                  <LinkButton href={create} look="primary" icon="plus">
                    Create the first
                  </LinkButton>
                  <LinkButton href={`#/buckets/${bucketId}/connect`}>Connect an agent</LinkButton>
                </IfMay>
              }
            >
              A sensor or an application, with the fields that it sends. Agents such as Telegraf create theirs themselves.
            </Empty>
          ) : (
            <SourceTable sources={list} />
          )
        }
      </WhenLoaded>
    </Section>
  );
}

function SourceTable({ sources }: { sources: Source[] }) {
  const now = Date.now();
  const listing = useListing(sources, {
    text: ({ name, type, description = "", schema }) => [name, type, description, ...Object.keys(schema)].join(" "),
    orders: [
      { label: "silent first", compare: bySilence(now) },
      { label: "by name", compare: byText((source) => source.name) },
      { label: "by newest point", compare: byMoment(({ stats }) => stats.lastDataPoint) },
      { label: "by points", compare: byNumber(({ stats }) => stats.totalDataPoints) },
    ],
  });
  return (
    <Listed listing={listing} one="source" label="Sources">
      <TableFrame label="Sources" stacked>
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
          {listing.shown.map((source) => (
            <tr key={source._id}>
              <SourceCells source={source} hint={source.type} />
              <td class="text muted" data-label="Fields">
                {Object.keys(source.schema).join(", ")}
              </td>
              <td class="number" data-label="Points">
                {formatCompact(source.stats.totalDataPoints)}
              </td>
              <td class="number nowrap" data-label="Interval">
                {source.stats.averageIntervalSeconds === null ? "–" : formatSpan(source.stats.averageIntervalSeconds)}
              </td>
              <td class="nowrap" data-label="Newest">
                <Ago at={source.stats.lastDataPoint} />
              </td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
    </Listed>
  );
}
