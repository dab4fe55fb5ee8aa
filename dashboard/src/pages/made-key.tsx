/** The key that snippets have in them: made here with one click, or put in by hand. */
import { useEffect, useRef } from "preact/hooks";
import { createBucketKey, type BucketKeyType } from "../api/keys";
import { useAction } from "../app/load";
import { rememberKey, useMadeKey } from "../app/made-keys";
import { notify } from "../app/notices";
import { useMay } from "../app/role";
import { Button } from "../parts/button";
import { ErrorBox } from "../parts/forms";
import { PLACEHOLDERS } from "../parts/snippets";

/** Names of keys are shorter than names of sources may be. */
const NAME_MAX = 100;

interface MadeKeyProps {
  bucketId: string;
  type: BucketKeyType;
  /** What a new key is called. */
  name: string;
  /** Where the key stands: `commands`. */
  what: string;
}

const NEEDS: Record<BucketKeyType, string> = { write: "Sending needs a write key.", read: "Reading needs a read key." };

export function MadeKey({ bucketId, type, name, what }: MadeKeyProps) {
  const key = useMadeKey(bucketId, type);
  const mayMake = useMay("editor");
  const made = useRef(false);
  const make = useAction(async () => {
    const created = await createBucketKey(bucketId, { name: name.slice(0, NAME_MAX), type });
    made.current = true;
    rememberKey(bucketId, created);
    notify(`${type === "write" ? "Write" : "Read"} key “${created.name}” created. The ${what} below use it.`);
  });
  const warning = useRef<HTMLParagraphElement>(null);
  // The button that was pressed is gone.
  useEffect(() => {
    if (made.current) warning.current?.focus();
    made.current = false;
  }, [key]);
  return key === null ? (
    <div class="notice-box">
      <p>
        {NEEDS[type]} Replace <code>{PLACEHOLDERS[type]}</code> with one of the bucket's{" "}
        <a href={`#/buckets/${bucketId}/keys`}>keys</a>
        {mayMake ? ", or" : "."}
      </p>
      {mayMake && (
        <Button small icon="plus" busy={make.running} onClick={() => void make.run()}>
          Create a {type} key
        </Button>
      )}
      <ErrorBox error={make.error} />
    </div>
  ) : (
    <p class="warn-box" tabIndex={-1} ref={warning}>
      <span>
        <strong>Copy it now.</strong> The {type} key is in the {what} until you leave or reload the dashboard; it cannot
        be read again.
      </span>
    </p>
  );
}
