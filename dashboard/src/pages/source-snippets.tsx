/** How to send to a source and how to ask it, in the user's language, with the key in it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { createBucketKey } from "../api/keys";
import type { Source } from "../api/sources";
import { useAction } from "../app/load";
import { madeKeys, rememberKey } from "../app/made-keys";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { useStore } from "../app/store";
import { Button } from "../parts/button";
import { ErrorBox } from "../parts/forms";
import { Section } from "../parts/page";
import { Snippet } from "../parts/show";
import { KEY_PLACEHOLDER, LANGUAGES } from "../parts/snippets";

/** Names of keys are shorter than names of sources may be. */
const NAME_MAX = 100;

export function SourceSnippets({ source }: { source: Source }) {
  const [chosen, setChosen] = useState(LANGUAGES[0]!.id);
  const key = useStore(madeKeys).get(source.bucketId)?.key ?? null;
  const made = useRef(false);
  const make = useAction(async () => {
    const created = await createBucketKey(source.bucketId, { name: source.name.slice(0, NAME_MAX), type: "write" });
    made.current = true;
    rememberKey(source.bucketId, created);
    notify(`Write key “${created.name}” created. The commands below use it.`);
  });
  const warning = useRef<HTMLParagraphElement>(null);
  // The button that was pressed is gone.
  useEffect(() => {
    if (made.current) warning.current?.focus();
    made.current = false;
  }, [key]);
  const { origin } = location;
  const target = { origin, bucketId: source.bucketId, sourceId: source._id, schema: source.schema, key };
  const language = LANGUAGES.find(({ id }) => id === chosen) ?? LANGUAGES[0]!;
  return (
    <Section
      title="Send and query"
      actions={
        <div class="segments wrap" role="group" aria-label="Language">
          {LANGUAGES.map(({ id, label }) => (
            <button type="button" key={id} aria-pressed={id === chosen} onClick={() => setChosen(id)}>
              {label}
            </button>
          ))}
        </div>
      }
    >
      {key === null ? (
        <div class="notice-box">
          <p>
            Sending needs a write key. Replace <code>{KEY_PLACEHOLDER}</code> with one of the bucket's{" "}
            <a href={`#/buckets/${source.bucketId}/keys`}>keys</a>, or
          </p>
          <IfMay>
            <Button small icon="plus" busy={make.running} onClick={() => void make.run()}>
              Create a write key
            </Button>
          </IfMay>
          <ErrorBox error={make.error} />
        </div>
      ) : (
        <p class="warn-box" tabIndex={-1} ref={warning}>
          <span>
            <strong>Copy it now.</strong> The write key is in the commands until you leave or reload the dashboard; it
            cannot be read again.
          </span>
        </p>
      )}
      <div class="snippets">
        {/* Keyed by language: what was copied was that one. */}
        <Snippet key={`send ${chosen}`} title="Send a point" code={language.send(target)} />
        {language.ask && (
          <Snippet key={`ask ${chosen}`} title="Query the newest points" code={language.ask(target)} />
        )}
      </div>
    </Section>
  );
}
