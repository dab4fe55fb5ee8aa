/** Name, description and retention of a bucket, new or not. */
import { changeBucket, createBucket, type Bucket } from "../api/buckets";
import { useDraft } from "../app/draft";
import { useAction } from "../app/load";
import { whenFree } from "../app/route";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox, TextField, faultAt } from "../parts/forms";
import { Restored } from "../parts/restored";

interface BucketFormProps {
  bucket: Bucket | null;
  onDone: (bucket: Bucket) => void;
  onClose: () => void;
}

const AT_FIELDS = ["name", "description", "retentionDays"];

export function BucketForm({ bucket, onDone, onClose }: BucketFormProps) {
  const typed = useDraft(bucket === null ? "bucket" : `bucket ${bucket._id}`, {
    name: bucket?.name ?? "",
    description: bucket?.description ?? "",
    days: bucket === null ? "" : String(bucket.retentionDays),
  });
  const { name, description, days } = typed.value;
  const cancel = () => {
    typed.done();
    onClose();
  };
  const { run, running, error } = useAction(async () => {
    const retentionDays = days.trim() === "" ? {} : { retentionDays: Number(days) };
    const body = { name, description, ...retentionDays };
    const saved = bucket === null ? await createBucket(body) : await changeBucket(bucket._id, body);
    typed.done();
    onDone(saved);
  });
  const shorter = bucket !== null && days.trim() !== "" && Number(days) < bucket.retentionDays;
  return (
    <Dialog title={bucket === null ? "New bucket" : "Edit bucket"} onClose={() => whenFree(onClose)}>
      <Restored draft={typed} />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Name"
          value={name}
          onInput={(text) => typed.change({ name: text })}
          required
          maxLength={100}
          fault={faultAt(error, "name")}
        />
        <TextField
          label="Description"
          value={description}
          onInput={(text) => typed.change({ description: text })}
          fault={faultAt(error, "description")}
        />
        <TextField
          label="Retention in days"
          type="number"
          min={1}
          step={1}
          value={days}
          onInput={(text) => typed.change({ days: text })}
          hint={bucket === null ? "If empty, the maximum of the plan" : "Older points are deleted"}
          fault={faultAt(error, "retentionDays")}
        />
        {shorter && (
          <p class="warn-box" role="status">
            Points older than {days} days will be gone at once, and for good.
          </p>
        )}
        <ErrorBox error={error} shownAt={(at) => AT_FIELDS.includes(at)} />
        <div class="actions end">
          <Button onClick={cancel}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            {bucket === null ? "Create bucket" : "Save"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
