/** One bucket: what happens in it, its sources, keys and rules, and what can be connected to it. */
import { useState } from "preact/hooks";
import { deleteBucket, getBucket, type Bucket } from "../api/buckets";
import { createBucketKey, deleteBucketKey, listBucketKeys, rotateBucketKey } from "../api/keys";
import { formatCompact, formatCount, plural } from "../app/format";
import { hasDraft } from "../app/draft";
import { useInterval, useLoad } from "../app/load";
import { Lazy } from "../app/lazy";
import { forgetKey, rememberKey } from "../app/made-keys";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { go } from "../app/route";
import { Button, LinkButton } from "../parts/button";
import { Confirm } from "../parts/dialog";
import { LoadError, Page, Skeleton } from "../parts/page";
import { Figure } from "../parts/show";
import { BucketActivity } from "./bucket-activity";
import type { AgentsProps } from "./bucket-agents";
import { BucketForm } from "./bucket-form";
import { BucketSources } from "./bucket-sources";
import { KeyList } from "./key-list";
import { BucketRules } from "./rules";

const TABS = [
  { id: "activity", label: "Activity" },
  { id: "sources", label: "Sources" },
  { id: "keys", label: "Keys" },
  { id: "connect", label: "Connect" },
  { id: "rules", label: "Alert rules" },
];

const RELOAD_MS = 10_000;

/** Looked at once, when something is connected. */
const Agents = (props: AgentsProps) => (
  <Lazy name="agents" what="snippets" load={async () => (await import("./bucket-agents")).BucketAgents} props={props} />
);

const TRAIL = [{ href: "#/buckets", label: "Buckets" }];

export function BucketPage({ id, tab }: { id: string; tab: string }) {
  const bucket = useLoad(`bucket ${id}`, (signal) => getBucket(id, signal), ["buckets", "sources", "keys"]);
  // New points are no change; they come all the time.
  useInterval(RELOAD_MS, bucket.refresh);
  const [editing, setEditing] = useState(() => hasDraft(`bucket ${id}`));
  const [deleting, setDeleting] = useState(false);
  const { data } = bucket;
  if (data === null) {
    return (
      <Page title="Bucket" trail={TRAIL}>
        {bucket.error !== null ? (
          <LoadError error={bucket.error} what="bucket" onRetry={bucket.reload} />
        ) : (
          <Skeleton shown={bucket.slow} what="bucket" />
        )}
      </Page>
    );
  }
  return (
    <Page
      title={data.name}
      trail={TRAIL}
      intro={data.description}
      actions={
        <IfMay>
          <Button icon="edit" onClick={() => setEditing(true)}>
            Edit
          </Button>
          <Button icon="trash" look="danger" onClick={() => setDeleting(true)}>
            Delete
          </Button>
        </IfMay>
      }
    >
      <dl class="figures card">
        <Figure label="Sources">{formatCount(data.stats?.dataSourceCount ?? 0)}</Figure>
        <Figure label="Points">{formatCompact(data.stats?.dataPointCount ?? 0)}</Figure>
        <Figure label="Keys">{formatCount(data.stats?.apiKeyCount ?? 0)}</Figure>
        <Figure label="Retention">{plural(data.retentionDays, "day")}</Figure>
      </dl>
      <nav class="tabs" aria-label="Parts of the bucket">
        {TABS.map((entry) => (
          <a
            key={entry.id}
            href={entry.id === "activity" ? `#/buckets/${id}` : `#/buckets/${id}/${entry.id}`}
            aria-current={tab === entry.id ? "page" : undefined}
          >
            {entry.label}
          </a>
        ))}
      </nav>
      <Tab bucket={data} tab={tab} />
      {editing && (
        <BucketForm
          bucket={data}
          onClose={() => setEditing(false)}
          onDone={(changed) => {
            notify(`Bucket “${changed.name}” saved.`);
            setEditing(false);
            bucket.reload();
          }}
        />
      )}
      {deleting && (
        <Confirm
          title="Delete bucket"
          action="Delete for good"
          typed={data.name}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            const gone = await deleteBucket(id);
            notify(
              `Bucket “${data.name}” deleted, with ${plural(gone.dataSources, "source")}, ${plural(gone.dataPoints, "point")}, ${plural(gone.apiKeys, "key")} and ${plural(gone.alertRules, "rule")}.`,
            );
            go("#/buckets");
          }}
        >
          <p>
            Its {plural(data.stats?.dataSourceCount ?? 0, "source")}, {plural(data.stats?.dataPointCount ?? 0, "point")}
            , {plural(data.stats?.apiKeyCount ?? 0, "key")} and all alert rules go with it. This cannot be undone.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

function Tab({ bucket, tab }: { bucket: Bucket; tab: string }) {
  switch (tab) {
    case "activity":
      return <BucketActivity bucketId={bucket._id} />;
    case "sources":
      return <BucketSources bucketId={bucket._id} />;
    case "keys":
      return (
        <KeyList
          routes={{
            id: bucket._id,
            title: "Keys of this bucket",
            note: "A write key can send and read points; a read key can only read.",
            types: [
              { value: "write", label: "write: sends and reads" },
              { value: "read", label: "read: only reads" },
            ],
            role: "editor",
            list: (signal) => listBucketKeys(bucket._id, signal),
            create: async (key) => {
              const made = await createBucketKey(bucket._id, { ...key, type: key.type === "read" ? "read" : "write" });
              rememberKey(bucket._id, made);
              return made;
            },
            rotate: async (keyId, overlapSeconds) => {
              const made = await rotateBucketKey(bucket._id, keyId, overlapSeconds);
              forgetKey(keyId);
              rememberKey(bucket._id, made);
              return made;
            },
            remove: async (keyId) => {
              await deleteBucketKey(bucket._id, keyId);
              forgetKey(keyId);
            },
          }}
        />
      );
    case "connect":
      return <Agents bucket={bucket} />;
    case "rules":
      return <BucketRules bucketId={bucket._id} />;
    default:
      return (
        <p class="state">
          There is no such part. <LinkButton href={`#/buckets/${bucket._id}`}>Back to the bucket</LinkButton>
        </p>
      );
  }
}
