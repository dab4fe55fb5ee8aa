/** One source: its schema, what it holds, how to send to it and how to ask it. */
import { useRef, useState } from "preact/hooks";
import { deleteSource, getSource, type Source } from "../api/sources";
import { formatCompact, formatSpan, plural } from "../app/format";
import { Lazy } from "../app/lazy";
import { useInterval, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { go } from "../app/route";
import { exploreHref, type FieldRef } from "../explorer/state";
import { Button, LinkButton } from "../parts/button";
import { Confirm } from "../parts/dialog";
import { LoadError, Page, Section, Skeleton, TableFrame } from "../parts/page";
import { Ago, Figure } from "../parts/show";
import { useBucketTrail } from "./bucket-trail";
import type { SourceDimensionsProps } from "./source-dimensions";
import { SourceStatus } from "./source-status";
import { SourceSnippets } from "./source-snippets";

const RELOAD_MS = 10_000;
const WAITING_RELOAD_MS = 2000;

/** Of few sources of who has none from agents. */
const LazyDimensions = (props: SourceDimensionsProps) => (
  <Lazy
    name="source dimensions"
    what="dimensions"
    load={async () => (await import("./source-dimensions")).SourceDimensions}
    props={props}
  />
);

export function SourcePage({ bucketId, sourceId }: { bucketId: string; sourceId: string }) {
  const source = useLoad(`source ${sourceId}`, (signal) => getSource(bucketId, sourceId, signal), ["sources"]);
  const [deleting, setDeleting] = useState(false);
  const trail = useBucketTrail(bucketId);
  const { data } = source;
  const waiting = data?.stats.totalDataPoints === 0;
  // Points are no change of the source; somebody who waits for the first sees it at once.
  useInterval(waiting ? WAITING_RELOAD_MS : RELOAD_MS, source.refresh);
  const waited = useRef(false);
  if (waiting) waited.current = true;
  if (data === null) {
    return (
      <Page title="Source" trail={trail}>
        {source.error !== null ? (
          <LoadError error={source.error} what="source" onRetry={source.reload} />
        ) : (
          <Skeleton shown={source.slow} what="source" />
        )}
      </Page>
    );
  }
  const charted = Object.entries(data.schema)
    .filter(([, definition]) => definition.type !== "string")
    .slice(0, 4);
  const chart = charted.map(([field]) => ({ bucketId, sourceId, field }));
  return (
    <Page
      title={data.name}
      trail={trail}
      intro={data.description}
      actions={
        <>
          <LinkButton href={exploreHref(chart)} icon="explore" look="primary">
            Explore
          </LinkButton>
          <IfMay>
            <LinkButton href={`#/rules/new?bucket=${bucketId}&source=${sourceId}`} icon="rules">
              New rule
            </LinkButton>
            <LinkButton href={`#/buckets/${bucketId}/sources/${sourceId}/edit`} icon="edit">
              Edit
            </LinkButton>
            <Button icon="trash" look="danger" onClick={() => setDeleting(true)}>
              Delete
            </Button>
          </IfMay>
        </>
      }
    >
      {waited.current && <FirstPoint waiting={waiting} chart={chart} />}
      <dl class="figures card">
        <Figure label="Points">{formatCompact(data.stats.totalDataPoints)}</Figure>
        <Figure label="Newest">
          <Ago at={data.stats.lastDataPoint} none="none yet" />
        </Figure>
        <Figure label="Oldest">
          <Ago at={data.stats.firstDataPoint} none="none yet" />
        </Figure>
        <Figure label="Usual interval">
          {data.stats.averageIntervalSeconds === null ? "–" : formatSpan(data.stats.averageIntervalSeconds)}
        </Figure>
        {data.stats.seriesCount !== null && (
          <Figure label="Series">{formatCompact(data.stats.seriesCount)}</Figure>
        )}
        <Figure label="Status">
          <SourceStatus source={data} />
        </Figure>
      </dl>
      <SchemaTable source={data} />
      {data.dimensions !== null && <LazyDimensions source={data} />}
      <SourceSnippets source={data} />
      {deleting && (
        <Confirm
          title="Delete source"
          action="Delete for good"
          typed={data.name}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            const gone = await deleteSource(bucketId, sourceId);
            notify(
              `Source “${data.name}” deleted, with ${plural(gone.dataPoints, "point")} and ${plural(gone.alertRules, "rule")}.`,
            );
            go(`#/buckets/${bucketId}/sources`);
          }}
        >
          <p>
            Its {plural(data.stats.totalDataPoints, "point")} and the alert rules that watch it go with it. This cannot
            be undone.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

/** What a newcomer waits for, and where to go when it is there. */
function FirstPoint({ waiting, chart }: { waiting: boolean; chart: FieldRef[] }) {
  return (
    <div class="notice-box first-point">
      <p role="status">
        {waiting ? "Waiting for the first point. It appears here as soon as it arrives." : "The first point is in."}
      </p>
      {!waiting && (
        <LinkButton href={exploreHref(chart, { kind: "last", preset: "15m" })} look="primary" icon="explore" small>
          See it on a chart
        </LinkButton>
      )}
    </div>
  );
}

function SchemaTable({ source }: { source: Source }) {
  const mode =
    source.schemaMode === "strict" ? "Undeclared fields are refused" : "Undeclared fields are added automatically";
  const thinning = source.downsampling ? "large raw queries are averaged" : "raw queries are never averaged";
  const again = source.duplicates === "skip" ? "; points that are sent again are skipped" : "";
  return (
    <Section title="Schema" note={`${mode}; ${thinning}${again}.`}>
      <TableFrame label="Schema" stacked>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Type</th>
            <th scope="col">Unit</th>
            <th scope="col">Description</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(source.schema).map(([field, definition]) => (
            <tr key={field}>
              <th scope="row" class="mono name">
                {field}
              </th>
              <td data-label="Type">{definition.type}</td>
              <td data-label="Unit">{definition.unit}</td>
              <td class="text muted" data-label="Description">
                {definition.description}
              </td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
    </Section>
  );
}
