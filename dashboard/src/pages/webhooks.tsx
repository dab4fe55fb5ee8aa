/** All webhooks of the organization. */
import { useState } from "preact/hooks";
import { listBuckets } from "../api/buckets";
import { listWebhooks, type Webhook } from "../api/webhooks";
import { formatCount } from "../app/format";
import { hasDraft } from "../app/draft";
import { useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { Button } from "../parts/button";
import { ShownOnce } from "../parts/dialog";
import { Empty, Page, TableFrame, WhenLoaded } from "../parts/page";
import { Ago, Pill, Url } from "../parts/show";
import { WebhookForm } from "./webhook-form";

export function WebhooksPage() {
  const loaded = useLoad(
    "webhooks",
    async (signal) => {
      const [webhooks, buckets] = await Promise.all([listWebhooks(signal), listBuckets(signal)]);
      return { webhooks, buckets, names: new Map(buckets.map((bucket) => [bucket._id, bucket.name])) };
    },
    ["webhooks", "buckets"],
  );
  const [creating, setCreating] = useState(() => hasDraft("webhook"));
  const [created, setCreated] = useState<Webhook | null>(null);
  return (
    <Page
      title="Webhooks"
      intro="Signed HTTP requests to your own URLs when rules fire, points arrive or buckets change."
      actions={
        <IfMay>
          <Button icon="plus" look="primary" onClick={() => setCreating(true)}>
            New webhook
          </Button>
        </IfMay>
      }
    >
      <WhenLoaded loaded={loaded} what="webhooks">
        {(data) =>
          data.webhooks.length === 0 ? (
            <Empty
              title="No webhooks yet"
              action={
                <IfMay>
                  <Button look="primary" icon="plus" onClick={() => setCreating(true)}>
                    Create the first
                  </Button>
                </IfMay>
              }
            >
              A URL that is notified when a rule fires.
            </Empty>
          ) : (
            <TableFrame label="Webhooks" stacked>
              <thead>
                <tr>
                  <th scope="col">URL</th>
                  <th scope="col">Status</th>
                  <th scope="col">Events</th>
                  <th scope="col">Bucket</th>
                  <th scope="col" class="number">
                    Delivered
                  </th>
                  <th scope="col" class="number">
                    Failed
                  </th>
                  <th scope="col">Last</th>
                </tr>
              </thead>
              <tbody>
                {data.webhooks.map((webhook) => (
                  <tr key={webhook._id}>
                    <td class="url-cell">
                      <a class="url" href={`#/webhooks/${webhook._id}`}>
                        <Url url={webhook.url} />
                      </a>
                    </td>
                    <td data-label="Status">
                      <Pill tone={webhook.status === "active" ? "ok" : "idle"}>{webhook.status}</Pill>
                    </td>
                    <td class="mono" data-label="Events">
                      {webhook.events.join(", ")}
                    </td>
                    <td class="name" data-label="Bucket">
                      {webhook.bucketId === null ? (
                        <span class="muted">every bucket</span>
                      ) : (
                        (data.names.get(webhook.bucketId) ?? webhook.bucketId)
                      )}
                    </td>
                    <td class="number" data-label="Delivered">
                      {formatCount(webhook.successfulDeliveries)}
                    </td>
                    <td class={webhook.failedDeliveries > 0 ? "number bad-text" : "number"} data-label="Failed">
                      {formatCount(webhook.failedDeliveries)}
                    </td>
                    <td class="nowrap" data-label="Last">
                      <Ago at={webhook.lastDeliveryAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </TableFrame>
          )
        }
      </WhenLoaded>
      {creating && (
        <WebhookForm
          webhook={null}
          buckets={loaded.data?.buckets ?? []}
          onClose={() => setCreating(false)}
          onDone={(webhook) => {
            setCreating(false);
            setCreated(webhook);
            notify("Webhook created.");
            loaded.reload();
          }}
        />
      )}
      {created !== null && (
        <ShownOnce title="Webhook created" what="secret" value={created.secret ?? ""} onClose={() => setCreated(null)}>
          <p class="hint">
            Receivers check <code>X-Webhook-Signature</code>, an HMAC-SHA256 of the body with this secret, or the
            Standard Webhooks headers.
          </p>
        </ShownOnce>
      )}
    </Page>
  );
}
