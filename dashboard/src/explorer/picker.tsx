/** The tree of buckets, sources and fields, with a search; fields are switched on and off as lines. */
import { useId, useState } from "preact/hooks";
import { formatCount } from "../app/format";
import { Button } from "../parts/button";
import type { Catalog } from "./catalog";
import { FIELDS_MAX, fieldId, sameField, type FieldRef } from "./state";
import { lookOf } from "../chart/palette";

interface PickerProps {
  catalog: Catalog;
  fields: FieldRef[];
  theme: "light" | "dark";
  /** Lines have colours of their own, several of a field. */
  split: boolean;
  onChange: (fields: FieldRef[]) => void;
}

export function Picker({ catalog, fields, theme, split, onChange }: PickerProps) {
  const [sought, setSought] = useState("");
  const id = useId();
  const needle = sought.trim().toLowerCase();
  const matches = (...texts: (string | undefined)[]) =>
    needle === "" || texts.some((text) => text !== undefined && text.toLowerCase().includes(needle));
  const shown = catalog.buckets
    .map(({ bucket, sources }) => ({
      bucket,
      sources: sources
        .map((source) => ({
          source,
          fields: Object.entries(source.schema).filter(([name, { unit }]) =>
            matches(bucket.name, source.name, name, unit),
          ),
        }))
        .filter((entry) => entry.fields.length > 0),
    }))
    .filter((entry) => entry.sources.length > 0);
  const toggle = (ref: FieldRef, on: boolean) =>
    onChange(on ? [...fields, ref] : fields.filter((other) => !sameField(other, ref)));
  const full = fields.length >= FIELDS_MAX;
  const found = shown.flatMap(({ bucket, sources }) =>
    sources.flatMap(({ source, fields: names }) =>
      names.map(([field]) => ({ bucketId: bucket._id, sourceId: source._id, field })),
    ),
  );
  const more = found.filter((ref) => !fields.some((other) => sameField(other, ref)));
  const room = more.slice(0, Math.max(0, FIELDS_MAX - fields.length));
  return (
    <div class="picker">
      <div class="picker-search">
        <label class="visually-hidden" for={id}>
          Find a source or field
        </label>
        <input
          id={id}
          class="input"
          type="search"
          placeholder="Find a source or field"
          value={sought}
          onInput={(event) => setSought(event.currentTarget.value)}
        />
      </div>
      {needle !== "" && room.length > 0 && (
        <Button small onClick={() => onChange([...fields, ...room])}>
          {room.length === more.length
            ? `Select all found (${room.length})`
            : `Select the first ${room.length} of ${formatCount(more.length)} found`}
        </Button>
      )}
      {full && <p class="hint">{FIELDS_MAX} lines are as many as a view holds.</p>}
      {shown.length === 0 && <p class="hint">Nothing is called “{sought}”.</p>}
      {shown.map(({ bucket, sources }) => (
        <section key={bucket._id} aria-label={`Bucket ${bucket.name}`}>
          <h2 class="picker-bucket">{bucket.name}</h2>
          {sources.map(({ source, fields: names }) => (
            <details
              key={source._id}
              open={needle !== "" || fields.some((ref) => ref.sourceId === source._id) || sources.length <= 2}
            >
              <summary>
                <span class="name">{source.name}</span>
                {source.stats.totalDataPoints === 0 && <span class="tag">no data</span>}
              </summary>
              <ul>
                {names.map(([field, definition]) => {
                  const ref = { bucketId: bucket._id, sourceId: source._id, field };
                  const index = fields.findIndex((other) => sameField(other, ref));
                  return (
                    <li key={fieldId(ref)}>
                      <label class="picker-field" title={definition.description}>
                        <input
                          type="checkbox"
                          checked={index >= 0}
                          disabled={index < 0 && full}
                          onChange={(event) => toggle(ref, event.currentTarget.checked)}
                        />
                        <span
                          class="swatch"
                          aria-hidden="true"
                          style={{ background: index < 0 ? "transparent" : split ? "var(--text-muted)" : lookOf(index, theme).stroke }}
                        />
                        <span class="name">{field}</span>
                        <span class="unit">{definition.type === "number" ? definition.unit : definition.type}</span>
                      </label>
                    </li>
                  );
                })}
              </ul>
            </details>
          ))}
        </section>
      ))}
    </div>
  );
}
