/** A webhook, new or changed. */
import { useState } from "preact/hooks";
import type { Bucket } from "../api/buckets";
import {
  EVENTS,
  FORMATS,
  changeWebhook,
  createWebhook,
  type Event,
  type Format,
  type Webhook,
} from "../api/webhooks";
import { useDraft } from "../app/draft";
import { useAction } from "../app/load";
import { whenFree } from "../app/route";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { CheckField, ErrorBox, SelectField, TextAreaField, TextField, faultAt } from "../parts/forms";
import { Restored } from "../parts/restored";

const EVENT_HINTS: Record<Event, string> = {
  "alert.triggered": "A rule fires.",
  "alert.resolved": "A rule that had fired is armed again.",
  "evaluation.overdue": "Nothing has evaluated a rule for two intervals, at least five minutes.",
  "evaluation.resumed": "A rule that was overdue has a verdict.",
  "source.stale": "A source with an expected interval has sent nothing for three of them.",
  "source.recovered": "A source that was stale sends again.",
  "data.received": "Points arrive. Best effort, for every ingest.",
  "bucket.updated": "The settings of a bucket have changed.",
};

const FORMAT_LABELS: Record<Format, string> = {
  standard: "Standard (JSON)",
  slack: "Slack",
  teams: "Microsoft Teams",
  ntfy: "ntfy",
  pagerduty: "PagerDuty",
  email: "Mail",
  template: "My own template",
};

const STARTING_TEMPLATE = '{"text": "{{event}}: {{data.alertName}}"}';

interface WebhookFormProps {
  webhook: Webhook | null;
  buckets: Bucket[];
  onDone: (webhook: Webhook) => void;
  onClose: () => void;
}

export function WebhookForm({ webhook, buckets, onDone, onClose }: WebhookFormProps) {
  const typed = useDraft(webhook === null ? "webhook" : `webhook ${webhook._id}`, {
    url: webhook?.url ?? "",
    events: webhook?.events ?? (["alert.triggered"] as Event[]),
    bucketId: webhook?.bucketId ?? "",
    retries: String(webhook?.retryConfig.maxRetries ?? 3),
    multiplier: String(webhook?.retryConfig.backoffMultiplier ?? 2),
    format: webhook?.format ?? ("standard" as Format),
    template: webhook?.template ?? STARTING_TEMPLATE,
  });
  const { url, events, bucketId, retries, multiplier, format, template } = typed.value;
  const { change } = typed;
  // Apart from what is kept: a draft holds no secret.
  const [secret, setSecret] = useState("");
  const [routingKey, setRoutingKey] = useState("");
  const { run, running, error } = useAction(async () => {
    const body = {
      url,
      events,
      bucketId: bucketId === "" ? null : bucketId,
      retryConfig: { maxRetries: Number(retries), backoffMultiplier: Number(multiplier) },
      format,
      ...(format === "template" ? { template } : {}),
      ...(format === "pagerduty" && routingKey !== "" ? { routingKey } : {}),
      ...(secret === "" ? {} : { secret }),
    };
    if (webhook === null) {
      const { bucketId: only, ...rest } = body;
      const made = await createWebhook(only === null ? rest : { ...rest, bucketId: only });
      typed.done();
      onDone(made);
    } else {
      const changed = await changeWebhook(webhook._id, body);
      typed.done();
      onDone(changed);
    }
  });
  const shown = [
    ...["url", "events", "bucketId", "secret", "format", "template", "routingKey"],
    ...["retryConfig.maxRetries", "retryConfig.backoffMultiplier"],
  ];
  return (
    <Dialog title={webhook === null ? "New webhook" : "Edit webhook"} onClose={() => whenFree(onClose)}>
      <Restored draft={typed} />
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
          onInput={(text) => change({ url: text })}
          required
          placeholder={format === "email" ? "mailto:ops@example.com" : "https://…"}
          hint={format === "email" ? "mailto: and one or more addresses, separated by commas" : undefined}
          fault={faultAt(error, "url")}
        />
        <SelectField
          label="Format"
          value={format}
          onChange={(name) => change({ format: name as Format })}
          options={FORMATS.map((name) => ({ value: name, label: FORMAT_LABELS[name] }))}
          fault={faultAt(error, "format")}
        />
        {format === "template" && (
          <TextAreaField
            label="Template"
            rows={6}
            maxLength={16_384}
            required
            value={template}
            onInput={(text) => change({ template: text })}
            hint="{{data.alertName}} stands for a member of the event: strings escaped for JSON, everything else as JSON."
            fault={faultAt(error, "template")}
          />
        )}
        {format === "pagerduty" && (
          <TextField
            label={webhook?.format === "pagerduty" ? "New routing key" : "Routing key"}
            value={routingKey}
            onInput={setRoutingKey}
            autocomplete="off"
            mono
            hint={
              webhook?.format === "pagerduty"
                ? "If empty, the current key is kept"
                : "Key of an Events API v2 integration. It is not shown again"
            }
            fault={faultAt(error, "routingKey")}
          />
        )}
        <fieldset class="choice-list">
          <legend>Events</legend>
          {EVENTS.map((name) => (
            <CheckField
              key={name}
              label={<span class="mono">{name}</span>}
              hint={EVENT_HINTS[name]}
              checked={events.includes(name)}
              onChange={(on) => change({ events: on ? [...events, name] : events.filter((other) => other !== name) })}
            />
          ))}
          {faultAt(error, "events") && <p class="fault">{faultAt(error, "events")}</p>}
        </fieldset>
        <SelectField
          label="Bucket"
          value={bucketId}
          onChange={(id) => change({ bucketId: id })}
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
            onInput={(text) => change({ retries: text })}
            fault={faultAt(error, "retryConfig.maxRetries")}
          />
          <TextField
            label="Backoff multiplier"
            type="number"
            min={1}
            max={10}
            step="any"
            value={multiplier}
            onInput={(text) => change({ multiplier: text })}
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
              ? "Signs the deliveries. If empty, one is generated and shown once"
              : "If empty, the current secret is kept"
          }
          fault={faultAt(error, "secret")}
        />
        <ErrorBox error={error} shownAt={(at) => shown.includes(at)} />
        <div class="actions end">
          <Button onClick={() => (typed.done(), onClose())}>Cancel</Button>
          <Button type="submit" look="primary" busy={running} disabled={events.length === 0}>
            {webhook === null ? "Create webhook" : "Save"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
