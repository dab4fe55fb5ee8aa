/** What the server is doing: its nodes, its shards, and what is wrong with them. */
import { readCluster, type Cluster, type ClusterNode } from "../api/operator";
import { formatBytes, formatCount, formatMoment, plural, sentence } from "../app/format";
import { useInterval, useLoad } from "../app/load";
import { asOperator } from "../app/operator";
import { useZone } from "../app/preferences";
import { LoadError, Section, Skeleton, TableFrame } from "../parts/page";
import { Listed, byNumber, byText, useListing } from "../parts/listing";
import { Ago, Figure, Pill } from "../parts/show";
import { ShardTable } from "./operator-shards";

const PERIOD_MS = 5000;
/** Numbers of shards that are named in a sentence. */
const NAMED_MAX = 12;

export function ClusterPart() {
  const cluster = useLoad("operator cluster", (signal) => asOperator((token) => readCluster(token, signal)));
  // What has failed is tried again by itself.
  useInterval(cluster.error === null ? PERIOD_MS : null, cluster.refresh);
  if (cluster.data === null) {
    return cluster.error !== null ? (
      <LoadError error={cluster.error} what="cluster" onRetry={cluster.reload} />
    ) : (
      <Skeleton shown={cluster.slow} what="cluster" />
    );
  }
  return (
    <>
      <Outdated readAt={cluster.data.readAt} error={cluster.error} />
      {cluster.data.clustered ? <Several cluster={cluster.data} /> : <Alone cluster={cluster.data} />}
    </>
  );
}

/** That what is shown may no longer be so, and since when. */
function Outdated({ readAt, error }: { readAt: string; error: Error | null }) {
  const zone = useZone();
  if (error === null) return null;
  return (
    <p class="warn-box" role="status">
      <span>
        <strong>Not up to date since {formatMoment(Date.parse(readAt), Date.now(), zone)}.</strong>{" "}
        {sentence(error.message)} Retrying every few seconds.
      </span>
    </p>
  );
}

function Alone({ cluster }: { cluster: Cluster }) {
  const [shard] = cluster.shards;
  return (
    <Section title="One machine" note="This server runs alone: it has no other nodes, and one shard.">
      {shard !== undefined && (
        <dl class="figures card">
          <Figure label="Last record">{formatCount(shard.lastSequence)}</Figure>
          <Figure label="Behind the checkpoint" note="records">
            {formatCount(shard.lastSequence - shard.coveredSequence)}
          </Figure>
          <Figure label="Log" note="read by the next start">
            {formatBytes(shard.tailBytes)}
          </Figure>
          <Figure label="Read">
            <Ago at={cluster.readAt} />
          </Figure>
        </dl>
      )}
    </Section>
  );
}

function Several({ cluster }: { cluster: Cluster }) {
  const { nodes, shards, weakness } = cluster;
  const unowned = shards.filter((shard) => shard.owner === null);
  const leaving = nodes.filter((node) => node.state === "leaving").length;
  const bytes = shards.reduce((sum, shard) => sum + shard.tailBytes, 0);
  return (
    <>
      {weakness !== null && (
        <p class="error-box" role="alert">
          <span>
            <strong>Nothing is written.</strong> {sentence(weakness)}
          </span>
        </p>
      )}
      {unowned.length > 0 && (
        <p class="warn-box" role="status">
          <span>
            <strong>{plural(unowned.length, "shard")} without an owner:</strong>{" "}
            {unowned
              .slice(0, NAMED_MAX)
              .map((shard) => shard.number)
              .join(", ")}
            {unowned.length > NAMED_MAX && ` and ${formatCount(unowned.length - NAMED_MAX)} more`}. Requests for their
            organizations wait until a node takes them over.
          </span>
        </p>
      )}
      <dl class="figures card">
        <Figure label="Nodes" note={leaving > 0 ? `${formatCount(leaving)} leaving` : undefined}>
          {formatCount(nodes.length)}
        </Figure>
        <Figure label="Shards" note={unowned.length > 0 ? `${formatCount(unowned.length)} without an owner` : undefined}>
          {formatCount(shards.length)}
        </Figure>
        <Figure label="Commits reach">
          <Pill tone={cluster.commitsReplicated ? "ok" : "bad"}>
            {cluster.commitsReplicated ? "two disks" : "one disk"}
          </Pill>
        </Figure>
        <Figure label="Logs" note="behind the checkpoints">
          {formatBytes(bytes)}
        </Figure>
        <Figure label="Read">
          <Ago at={cluster.readAt} />
        </Figure>
      </dl>
      <NodeTable nodes={nodes} />
      <ShardTable cluster={cluster} />
    </>
  );
}

function NodeTable({ nodes }: { nodes: ClusterNode[] }) {
  const listing = useListing(nodes, {
    text: ({ address, id, state }) => [address, id, state].join(" "),
    orders: [
      { label: "by address", compare: byText((node) => node.address ?? "") },
      { label: "by shards", compare: byNumber((node) => node.shards) },
    ],
  });
  return (
    <Section title="Nodes">
      <Listed listing={listing} one="node" label="Find nodes">
        <TableFrame label="Nodes" stacked>
          <thead>
            <tr>
              <th scope="col">Address</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Shards
              </th>
              <th scope="col" class="number">
                Lease
              </th>
              <th scope="col">ID</th>
            </tr>
          </thead>
          <tbody>
            {listing.shown.map((node) => (
              <tr key={node.id}>
                <th scope="row" class="name">
                  {node.address}
                  {node.isThis && <span class="hint"> this node has answered</span>}
                </th>
                <td data-label="State">
                  <Pill tone={node.state === "leaving" ? "warn" : "ok"}>{node.state}</Pill>
                </td>
                <td class="number" data-label="Shards">
                  {formatCount(node.shards)}
                </td>
                <td class="number" data-label="Lease">
                  {node.leaseSeconds} s
                </td>
                <td class="mono" data-label="ID">
                  {node.id}
                </td>
              </tr>
            ))}
          </tbody>
        </TableFrame>
      </Listed>
    </Section>
  );
}
