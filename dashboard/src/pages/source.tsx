/** One source: its schema, what it holds, how to send to it and how to ask it. */
import { useState } from "preact/hooks";
import { deleteSource, getSource, type Source } from "../api/sources";
import { formatCompact, formatSpan, plural } from "../app/format";
import { useLoad } from "../app/load";
import { notify } from "../app/notices";
import { go } from "../app/route";
import { exploreHref } from "../explorer/state";
import { Button, LinkButton } from "../parts/button";
import { Confirm } from "../parts/dialog";
import { LoadError, Page, Section, Skeleton, TableFrame } from "../parts/page";
import { Ago, Figure, Pill, Snippet } from "../parts/show";
import { curlQuery, curlSend, pythonQuery, pythonSend } from "../parts/snippets";

export function SourcePage({ bucketId, sourceId }: { bucketId: string; sourceId: string }) {
  const source = useLoad(`source ${sourceId}`, (signal) => getSource(bucketId, sourceId, signal));
  const [deleting, setDeleting] = useState(false);
  const trail = [
    { href: "#/buckets", label: "Buckets" },
    { href: `#/buckets/${bucketId}/sources`, label: "Sources" },
  ];
  const { data } = source;
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
  return (
    <Page
      title={data.name}
      trail={trail}
      intro={data.description}
      actions={
        <>
          <LinkButton
            href={exploreHref(charted.map(([field]) => ({ bucketId, sourceId, field })))}
            icon="explore"
            look="primary"
          >
            Explore
          </LinkButton>
          <LinkButton href={`#/rules/new?bucket=${bucketId}&source=${sourceId}`} icon="rules">
            Watch it
          </LinkButton>
          <LinkButton href={`#/buckets/${bucketId}/sources/${sourceId}/edit`} icon="edit">
            Edit
          </LinkButton>
          <Button icon="trash" look="danger" onClick={() => setDeleting(true)}>
            Delete
          </Button>
        </>
      }
    >
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
        <Figure label="Status">
          <Pill tone={data.status === "active" ? "ok" : "idle"}>{data.status}</Pill>
        </Figure>
      </dl>
      <SchemaTable source={data} />
      <Snippets source={data} />
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

function SchemaTable({ source }: { source: Source }) {
  const mode =
    source.schemaMode === "strict" ? "Undeclared fields are refused" : "Undeclared fields are added as they come";
  const thinning = source.downsampling ? "large raw queries are averaged" : "raw queries are never averaged";
  return (
    <Section title="Schema" note={`${mode}; ${thinning}.`}>
      <TableFrame label="Schema">
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
              <td>{definition.type}</td>
              <td>{definition.unit}</td>
              <td class="text muted">{definition.description}</td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
    </Section>
  );
}

function Snippets({ source }: { source: Source }) {
  const [language, setLanguage] = useState<"curl" | "python">("curl");
  const target = { origin: location.origin, bucketId: source.bucketId, sourceId: source._id, schema: source.schema };
  const curl = language === "curl";
  return (
    <Section
      title="Send and ask"
      note={
        <>
          Put a write key into <code>TIDEWATCH_KEY</code>; the bucket's{" "}
          <a href={`#/buckets/${source.bucketId}/keys`}>keys</a> are made there.
        </>
      }
      actions={
        <div class="segments" role="group" aria-label="Language">
          <button type="button" aria-pressed={curl} onClick={() => setLanguage("curl")}>
            curl
          </button>
          <button type="button" aria-pressed={!curl} onClick={() => setLanguage("python")}>
            Python
          </button>
        </div>
      }
    >
      <div class="snippets">
        <Snippet title="Send a point" code={curl ? curlSend(target) : pythonSend(target)} />
        <Snippet title="Ask for the newest points" code={curl ? curlQuery(target) : pythonQuery(target)} />
      </div>
    </Section>
  );
}
