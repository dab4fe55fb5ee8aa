/** How agents write to a bucket and Grafana reads it, with the key in their configurations. */
import { useState } from "preact/hooks";
import type { Bucket } from "../api/buckets";
import { useMadeKey } from "../app/made-keys";
import { AGENTS } from "../parts/agent-snippets";
import { Section } from "../parts/page";
import { Snippet } from "../parts/show";
import { MadeKey } from "./made-key";

export interface AgentsProps {
  bucket: Bucket;
}

export function BucketAgents({ bucket }: AgentsProps) {
  const [chosen, setChosen] = useState(AGENTS[0]!.id);
  const agent = AGENTS.find(({ id }) => id === chosen) ?? AGENTS[0]!;
  const key = useMadeKey(bucket._id, agent.keyType);
  const snippets = agent.snippets({ origin: location.origin, bucket: bucket.name, key });
  return (
    <Section
      title="Connect"
      note="Agents create their sources themselves, with all their tags, labels and attributes as dimensions."
      actions={
        <div class="segments wrap" role="group" aria-label="Agent">
          {AGENTS.map(({ id, label }) => (
            <button type="button" key={id} aria-pressed={id === chosen} onClick={() => setChosen(id)}>
              {label}
            </button>
          ))}
        </div>
      }
    >
      <p>{agent.text}</p>
      <MadeKey key={agent.keyType} bucketId={bucket._id} type={agent.keyType} name={agent.label} what="configurations" />
      <div class="snippets">
        {/* Keyed by agent: what was copied was that one. */}
        {snippets.map(({ title, code }) => (
          <Snippet key={`${chosen} ${title}`} title={title} code={code} />
        ))}
      </div>
      {agent.keyType === "write" && (
        <p class="hint">
          What arrives appears among the bucket's <a href={`#/buckets/${bucket._id}/sources`}>sources</a>.
        </p>
      )}
    </Section>
  );
}
