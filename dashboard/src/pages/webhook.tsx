/** One webhook: its settings and what became of its deliveries. */
import { useState } from "preact/hooks";
import { listBuckets } from "../api/buckets";
import { changeWebhook, deleteWebhook, getWebhook, redeliver, testWebhook, webhookDeliveries } from "../api/webhooks";
import { formatCount, plural } from "../app/format";
import { hasDraft } from "../app/draft";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { go } from "../app/route";
import { Button } from "../parts/button";
import { Confirm } from "../parts/dialog";
import { ErrorBox } from "../parts/forms";
import { LoadError, Page, Section, Skeleton } from "../parts/page";
import { Ago, ExternalUrl, Figure, Pill, Url } from "../parts/show";
import { Deliveries } from "./deliveries";
import { WebhookForm } from "./webhook-form";

const TRAIL = [{ href: "#/webhooks", label: "Webhooks" }];

export function WebhookPage({ id }: { id: string }) {
  const loaded = useLoad(
    `webhook ${id}`,
    async (signal) => {
      const [webhook, buckets] = await Promise.all([getWebhook(id, signal), listBuckets(signal)]);
      return { webhook, buckets };
    },
    ["webhooks", "buckets"],
  );
  const [dialog, setDialog] = useState<"edit" | "delete" | null>(() => (hasDraft(`webhook ${id}`) ? "edit" : null));
  const act = useAction(async (what: "pause" | "test") => {
    if (loaded.data === null) return;
    if (what === "pause") {
      const status = loaded.data.webhook.status === "active" ? "paused" : "active";
      await changeWebhook(id, { status });
      notify(status === "paused" ? "Paused: nothing is queued for it." : "Resumed.");
    } else {
      await testWebhook(id);
      notify("Test event queued. Its delivery is listed below.");
    }
    loaded.reload();
  });
  if (loaded.data === null) {
    return (
      <Page title="Webhook" trail={TRAIL}>
        {loaded.error !== null ? (
          <LoadError error={loaded.error} what="webhook" onRetry={loaded.reload} />
        ) : (
          <Skeleton shown={loaded.slow} what="webhook" />
        )}
      </Page>
    );
  }
  const { webhook, buckets } = loaded.data;
  const bucket = buckets.find((other) => other._id === webhook.bucketId);
  return (
    <Page
      title="Webhook"
      trail={TRAIL}
      intro={<ExternalUrl url={webhook.url} />}
      actions={
        <IfMay>
          <Button look="primary" busy={act.running} onClick={() => void act.run("test")}>
            Send a test
          </Button>
          <Button
            icon={webhook.status === "active" ? "pause" : "play"}
            busy={act.running}
            onClick={() => void act.run("pause")}
          >
            {webhook.status === "active" ? "Pause" : "Resume"}
          </Button>
          <Button icon="edit" onClick={() => setDialog("edit")}>
            Edit
          </Button>
          <Button icon="trash" look="danger" onClick={() => setDialog("delete")}>
            Delete
          </Button>
        </IfMay>
      }
    >
      <ErrorBox error={act.error} />
      <dl class="figures card">
        <Figure label="Status">
          <Pill tone={webhook.status === "active" ? "ok" : "idle"}>{webhook.status}</Pill>
        </Figure>
        <Figure label="Delivered">{formatCount(webhook.successfulDeliveries)}</Figure>
        <Figure label="Failed">{formatCount(webhook.failedDeliveries)}</Figure>
        <Figure label="Last" note={webhook.lastDeliveryStatus ?? undefined}>
          <Ago at={webhook.lastDeliveryAt} />
        </Figure>
      </dl>
      <Section title="Settings" class="card">
        <dl class="rows">
          <div>
            <dt>Events</dt>
            <dd class="mono">{webhook.events.join(", ")}</dd>
          </div>
          <div>
            <dt>Format</dt>
            <dd class="mono">{webhook.format}</dd>
          </div>
          <div>
            <dt>Bucket</dt>
            <dd>
              {webhook.bucketId === null ? (
                "every bucket"
              ) : (
                <a class="name" href={`#/buckets/${webhook.bucketId}`}>
                  {bucket?.name ?? webhook.bucketId}
                </a>
              )}
            </dd>
          </div>
          <div>
            <dt>When it fails</dt>
            <dd>
              {webhook.retryConfig.maxRetries === 0
                ? "not tried again"
                : `tried ${plural(webhook.retryConfig.maxRetries, "more time")}, after ${waits(webhook.retryConfig)}`}
            </dd>
          </div>
        </dl>
      </Section>
      <Deliveries
        id={`webhook ${id}`}
        title="Deliveries"
        list={(limit, offset, signal) => webhookDeliveries(id, limit, offset, signal)}
        redeliver={(deliveryId) => redeliver(id, deliveryId)}
      />
      {dialog === "edit" && (
        <WebhookForm
          webhook={webhook}
          buckets={buckets}
          onClose={() => setDialog(null)}
          onDone={() => {
            notify("Webhook saved.");
            setDialog(null);
            loaded.reload();
          }}
        />
      )}
      {dialog === "delete" && (
        <Confirm
          title="Delete webhook"
          action="Delete webhook"
          onClose={() => setDialog(null)}
          onConfirm={async () => {
            await deleteWebhook(id);
            notify("Webhook deleted.");
            go("#/webhooks");
          }}
        >
          <p>
            <span class="url">
              <Url url={webhook.url} />
            </span>{" "}
            will hear of nothing any more. To stop it for a while, pause it instead.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

/** `1, 2 and 4 s`: the n-th retry waits the multiplier to the power of n − 1 seconds. */
function waits({ maxRetries, backoffMultiplier }: { maxRetries: number; backoffMultiplier: number }): string {
  const seconds = Array.from({ length: Math.min(maxRetries, 4) }, (_, n) =>
    Number((backoffMultiplier ** n).toFixed(1)),
  );
  const last = seconds.pop();
  if (maxRetries > 4) return `${[...seconds, last].join(", ")} … s`;
  return seconds.length === 0 ? `${last} s` : `${seconds.join(", ")} and ${last} s`;
}
