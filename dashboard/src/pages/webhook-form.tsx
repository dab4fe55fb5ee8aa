/** A webhook, new or changed. */
import { useState } from "preact/hooks";
import type { Bucket } from "../api/buckets";
import { EVENTS, changeWebhook, createWebhook, type Event, type Webhook } from "../api/webhooks";
import { useAction } from "../app/load";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { CheckField, ErrorBox, SelectField, TextField, faultAt } from "../parts/forms";

const EVENT_HINTS: Record<Event, string> = {
  "alert.triggered": "A rule fires.",
  "data.received": "Points come in. Best effort, and as often as they come.",
  "bucket.updated": "The settings of a bucket change.",
};

interface WebhookFormProps {
  webhook: Webhook | null;
  buckets: Bucket[];
  onDone: (webhook: Webhook) => void;
  onClose: () => void;
}

export function WebhookForm({ webhook, buckets, onDone, onClose }: WebhookFormProps) {
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [events, setEvents] = useState<Event[]>(webhook?.events ?? ["alert.triggered"]);
  const [bucketId, setBucketId] = useState(webhook?.bucketId ?? "");
  const [secret, setSecret] = useState("");
  const [retries, setRetries] = useState(String(webhook?.retryConfig.maxRetries ?? 3));
  const [multiplier, setMultiplier] = useState(String(webhook?.retryConfig.backoffMultiplier ?? 2));
  const { run, running, error } = useAction(async () => {
    const body = {
      url,
      events,
      bucketId: bucketId === "" ? null : bucketId,
      retryConfig: { maxRetries: Number(retries), backoffMultiplier: Number(multiplier) },
      ...(secret === "" ? {} : { secret }),
    };
    if (webhook === null) {
      const { bucketId: only, ...rest } = body;
      onDone(await createWebhook(only === null ? rest : { ...rest, bucketId: only }));
    } else onDone(await changeWebhook(webhook._id, body));
  });
  const shown = ["url", "events", "bucketId", "secret", "retryConfig.maxRetries", "retryConfig.backoffMultiplier"];
  return (
    <Dialog title={webhook === null ? "New webhook" : "Edit webhook"} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="URL"
          type="url"
          value={url}
          onInput={setUrl}
          required
          placeholder="https://…"
          fault={faultAt(error, "url")}
        />
        <fieldset class="choice-list">
          <legend>Hears of</legend>
          {EVENTS.map((name) => (
            <CheckField
              key={name}
              label={<span class="mono">{name}</span>}
              hint={EVENT_HINTS[name]}
              checked={events.includes(name)}
              onChange={(on) => setEvents(on ? [...events, name] : events.filter((other) => other !== name))}
            />
          ))}
          {faultAt(error, "events") && <p class="fault">{faultAt(error, "events")}</p>}
        </fieldset>
        <SelectField
          label="From"
          value={bucketId}
          onChange={setBucketId}
          options={[
            { value: "", label: "every bucket" },
            ...buckets.map((bucket) => ({ value: bucket._id, label: bucket.name })),
          ]}
          fault={faultAt(error, "bucketId")}
        />
        <div class="form-grid">
          <TextField
            label="Retries"
            type="number"
            min={0}
            max={10}
            step={1}
            value={retries}
            onInput={setRetries}
            fault={faultAt(error, "retryConfig.maxRetries")}
          />
          <TextField
            label="Backoff multiplier"
            type="number"
            min={1}
            max={10}
            step="any"
            value={multiplier}
            onInput={setMultiplier}
            fault={faultAt(error, "retryConfig.backoffMultiplier")}
          />
        </div>
        <TextField
          label={webhook === null ? "Secret" : "New secret"}
          value={secret}
          onInput={setSecret}
          autocomplete="off"
          mono
          hint={
            webhook === null
              ? "Signs the deliveries. Empty: one is made and shown once"
              : "Empty: the one there is stays"
          }
          fault={faultAt(error, "secret")}
        />
        <ErrorBox error={error} shownAt={(at) => shown.includes(at)} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running} disabled={events.length === 0}>
            {webhook === null ? "Create webhook" : "Save"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
