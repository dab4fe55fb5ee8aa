/** A new silence: of some rules, of a bucket, or of all rules. */
import { useState } from "preact/hooks";
import type { Bucket } from "../api/buckets";
import type { Rule } from "../api/rules";
import { createSilence } from "../api/silences";
import { useAction } from "../app/load";
import { notify } from "../app/notices";
import { useZone } from "../app/preferences";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { CheckField, ErrorBox, SelectField, TextField, faultAt, focusFault } from "../parts/forms";
import { MomentField, typedMoment } from "../parts/moment";

interface SilenceFormProps {
  rules: Rule[];
  buckets: Bucket[];
  onDone: () => void;
  onClose: () => void;
}

/** Of which rules; else the id of a bucket. */
const [ALL, SOME] = ["all", "some"];

export function SilenceForm({ rules, buckets, onDone, onClose }: SilenceFormProps) {
  const zone = useZone();
  const [scope, setScope] = useState<string>(rules.length > 0 ? SOME : ALL);
  const [picked, setPicked] = useState<string[]>(rules.length === 1 ? [rules[0]!._id] : []);
  const [until, setUntil] = useState("now+1h");
  const [reason, setReason] = useState("");
  const [isTried, setTried] = useState(false);
  const isNone = scope === SOME && picked.length === 0;
  const { run, running, error } = useAction(async (form: HTMLFormElement) => {
    setTried(true);
    const end = typedMoment(until, zone, "to");
    if (end === null) return focusFault(form);
    if (isNone) return form.querySelector<HTMLInputElement>("input[type=checkbox]")?.focus();
    await createSilence({
      ...(scope === SOME ? { alertIds: picked } : scope === ALL ? {} : { bucketId: scope }),
      until: new Date(end).toISOString(),
      reason,
    });
    notify("Silence created.");
    onDone();
  });
  return (
    <Dialog title="New silence" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(event.currentTarget);
        }}
      >
        <SelectField
          label="Silence"
          value={scope}
          onChange={setScope}
          options={[
            { value: SOME, label: "some rules" },
            ...buckets.map((bucket) => ({ value: bucket._id, label: `every rule of ${bucket.name}` })),
            { value: ALL, label: "every rule of the organization" },
          ]}
          fault={faultAt(error, "bucketId")}
        />
        {scope === SOME && (
          <fieldset class="choice-list">
            <legend>Rules</legend>
            {rules.map((rule) => (
              <CheckField
                key={rule._id}
                label={rule.name}
                checked={picked.includes(rule._id)}
                onChange={(on) => setPicked(on ? [...picked, rule._id] : picked.filter((id) => id !== rule._id))}
              />
            ))}
            {isTried && isNone && (
              <p class="fault" role="alert">
                Choose at least one rule.
              </p>
            )}
            {faultAt(error, "alertIds") && <p class="fault">{faultAt(error, "alertIds")}</p>}
          </fieldset>
        )}
        <MomentField
          label="Until"
          edge="to"
          example="now+2h"
          value={until}
          onInput={setUntil}
          required
          fault={faultAt(error, "until")}
        />
        <TextField
          label="Reason"
          value={reason}
          onInput={setReason}
          required
          maxLength={1000}
          fault={faultAt(error, "reason")}
        />
        <ErrorBox error={error} shownAt={(at) => ["bucketId", "alertIds", "until", "reason"].includes(at)} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            Create silence
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
