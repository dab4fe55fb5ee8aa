/** All buckets. */
import { useState } from "preact/hooks";
import { listBuckets, type Bucket } from "../api/buckets";
import { plural } from "../app/format";
import { hasDraft } from "../app/draft";
import { useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { go, useRoute } from "../app/route";
import { Button } from "../parts/button";
import { byMoment, byText, Listed, useListing } from "../parts/listing";
import { Empty, Page, TableFrame, WhenLoaded } from "../parts/page";
import { Time } from "../parts/show";
import { BucketForm } from "./bucket-form";

export function BucketsPage() {
  const buckets = useLoad("buckets", listBuckets, ["buckets"]);
  const { search } = useRoute();
  const [creating, setCreating] = useState(() => search.has("new") || hasDraft("bucket"));
  return (
    <Page
      title="Buckets"
      intro="A bucket groups sources with their keys and rules, and sets how long their points are kept."
      actions={
        <IfMay>
          <Button icon="plus" look="primary" onClick={() => setCreating(true)}>
            New bucket
          </Button>
        </IfMay>
      }
    >
      <WhenLoaded loaded={buckets} what="buckets">
        {(list) =>
          list.length === 0 ? (
            <Empty
              title="No buckets yet"
              action={
                <IfMay>
                  <Button look="primary" icon="plus" onClick={() => setCreating(true)}>
                    Create the first
                  </Button>
                </IfMay>
              }
            >
              All points are stored in buckets.
            </Empty>
          ) : (
            <BucketTable buckets={list} />
          )
        }
      </WhenLoaded>
      {creating && (
        <BucketForm
          bucket={null}
          onClose={() => setCreating(false)}
          onDone={(bucket) => {
            notify(`Bucket “${bucket.name}” created.`);
            go(`#/buckets/${bucket._id}`);
          }}
        />
      )}
    </Page>
  );
}

function BucketTable({ buckets }: { buckets: Bucket[] }) {
  const listing = useListing(buckets, {
    text: ({ name, description = "" }) => `${name} ${description}`,
    orders: [
      { label: "oldest first", compare: () => 0 },
      { label: "newest first", compare: byMoment((bucket) => bucket.createdAt) },
      { label: "by name", compare: byText((bucket) => bucket.name) },
    ],
  });
  return (
    <Listed listing={listing} one="bucket" label="Buckets">
      <TableFrame label="Buckets" stacked>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Description</th>
            <th scope="col" class="number">
              Retention
            </th>
            <th scope="col">Created</th>
          </tr>
        </thead>
        <tbody>
          {listing.shown.map((bucket) => (
            <tr key={bucket._id}>
              <td>
                <a class="name" href={`#/buckets/${bucket._id}`}>
                  {bucket.name}
                </a>
              </td>
              <td class="muted text" data-label="Description">
                {bucket.description}
              </td>
              <td class="number nowrap" data-label="Retention">
                {plural(bucket.retentionDays, "day")}
              </td>
              <td data-label="Created">
                <Time at={bucket.createdAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
    </Listed>
  );
}
