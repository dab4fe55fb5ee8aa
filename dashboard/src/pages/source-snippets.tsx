/** How to send to a source and how to ask it, in the user's language, with the key in it. */
import { useState } from "preact/hooks";
import type { Source } from "../api/sources";
import { useMadeKey } from "../app/made-keys";
import { Section } from "../parts/page";
import { Snippet } from "../parts/show";
import { LANGUAGES } from "../parts/snippets";
import { MadeKey } from "./made-key";

export function SourceSnippets({ source }: { source: Source }) {
  const [chosen, setChosen] = useState(LANGUAGES[0]!.id);
  const key = useMadeKey(source.bucketId, "write");
  const { origin } = location;
  const target = { origin, bucketId: source.bucketId, sourceId: source._id, schema: source.schema, key };
  const language = LANGUAGES.find(({ id }) => id === chosen) ?? LANGUAGES[0]!;
  return (
    <Section
      title="Send and query"
      note={
        <>
          Telegraf, Prometheus, OpenTelemetry and MQTT create their sources themselves:{" "}
          <a href={`#/buckets/${source.bucketId}/connect`}>connect an agent</a> to the bucket.
        </>
      }
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
      <MadeKey bucketId={source.bucketId} type="write" name={source.name} what="commands" />
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
