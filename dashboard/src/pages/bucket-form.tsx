/** Name, description and retention of a bucket, new or not. */
import { useState } from "preact/hooks";
import { changeBucket, createBucket, type Bucket } from "../api/buckets";
import { useAction } from "../app/load";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox, TextField, faultAt } from "../parts/forms";

interface BucketFormProps {
  bucket: Bucket | null;
  onDone: (bucket: Bucket) => void;
  onClose: () => void;
}

const AT_FIELDS = ["name", "description", "retentionDays"];

export function BucketForm({ bucket, onDone, onClose }: BucketFormProps) {
  const [name, setName] = useState(bucket?.name ?? "");
  const [description, setDescription] = useState(bucket?.description ?? "");
  const [days, setDays] = useState(bucket === null ? "" : String(bucket.retentionDays));
  const { run, running, error } = useAction(async () => {
    const retentionDays = days.trim() === "" ? {} : { retentionDays: Number(days) };
    const body = { name, description, ...retentionDays };
    onDone(bucket === null ? await createBucket(body) : await changeBucket(bucket._id, body));
  });
  const shorter = bucket !== null && days.trim() !== "" && Number(days) < bucket.retentionDays;
  return (
    <Dialog title={bucket === null ? "New bucket" : "Edit bucket"} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          required
          maxLength={100}
          fault={faultAt(error, "name")}
        />
        <TextField
          label="Description"
          value={description}
          onInput={setDescription}
          fault={faultAt(error, "description")}
        />
        <TextField
          label="Retention in days"
          type="number"
          min={1}
          step={1}
          value={days}
          onInput={setDays}
          hint={bucket === null ? "Empty: as long as the plan allows" : "Points older than this are gone"}
          fault={faultAt(error, "retentionDays")}
        />
        {shorter && (
          <p class="warn-box" role="status">
            Points older than {days} days will be gone at once, and for good.
          </p>
        )}
        <ErrorBox error={error} shownAt={(at) => AT_FIELDS.includes(at)} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            {bucket === null ? "Create bucket" : "Save"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
