/** The shards of a cluster, those without an owner first. */
import type { Cluster, ClusterShard } from "../api/operator";
import { formatBytes, formatCount } from "../app/format";
import { Listed, byNumber, useListing } from "../parts/listing";
import { Section, TableFrame } from "../parts/page";
import { Pill } from "../parts/show";

const byShard = (a: ClusterShard, b: ClusterShard) => a.number - b.number;
const ownersLast = (a: ClusterShard, b: ClusterShard) =>
  Number(a.owner !== null) - Number(b.owner !== null) || byShard(a, b);

export function ShardTable({ cluster }: { cluster: Cluster }) {
  const addresses = new Map(cluster.nodes.map((node) => [node.id, node.address]));
  const addressOf = (shard: ClusterShard) => (shard.owner === null ? null : (addresses.get(shard.owner) ?? shard.owner));
  const listing = useListing(cluster.shards, {
    text: (shard) => `${shard.number} ${addressOf(shard) ?? "no owner"} ${shard.root ?? ""}`,
    orders: [
      { label: "without owner first", compare: ownersLast },
      { label: "by number", compare: byShard },
      { label: "by log to replay", compare: byNumber((shard) => shard.tailBytes) },
      { label: "by epoch", compare: byNumber((shard) => shard.epoch) },
    ],
  });
  return (
    <Section
      title="Shards"
      note="The epoch grows with each change of the owner. The next owner replays the log behind the checkpoint."
    >
      <Listed listing={listing} one="shard" label="Find shards">
        <TableFrame label="Shards" stacked>
          <thead>
            <tr>
              <th scope="col">Shard</th>
              <th scope="col">Owner</th>
              <th scope="col" class="number">
                Epoch
              </th>
              <th scope="col" class="number">
                Last record
              </th>
              <th scope="col" class="number">
                To replay
              </th>
              <th scope="col">Checkpoint</th>
            </tr>
          </thead>
          <tbody>
            {listing.shown.map((shard) => (
              <tr key={shard.number}>
                <th scope="row">
                  <span class="phone-only">Shard </span>
                  {shard.number}
                </th>
                <td data-label="Owner">{addressOf(shard) ?? <Pill tone="bad">no owner</Pill>}</td>
                <td class="number" data-label="Epoch">
                  {shard.epoch}
                </td>
                <td class="number" data-label="Last record">
                  {formatCount(shard.lastSequence)}
                </td>
                <td class="number" data-label="To replay">
                  <span>
                    {formatBytes(shard.tailBytes)}
                    <span class="unit"> · {formatCount(shard.lastSequence - shard.coveredSequence)} records</span>
                  </span>
                </td>
                <td class="mono text" data-label="Checkpoint">
                  {shard.root ?? <span class="muted">none yet</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </TableFrame>
      </Listed>
    </Section>
  );
}
