/** The annotations in the range under the chart: a new one, and the end of one. */
import { useState } from "preact/hooks";
import { createAnnotation, deleteAnnotation } from "../api/annotations";
import { formatTime } from "../app/format";
import { useAction } from "../app/load";
import { notify } from "../app/notices";
import type { Zone } from "../app/preferences";
import { IfMay } from "../app/role";
import { Button } from "../parts/button";
import { Confirm, Dialog } from "../parts/dialog";
import { ErrorBox, SelectField, TextField, faultAt, focusFault } from "../parts/forms";
import { MomentField, typedMoment } from "../parts/moment";
import { Section } from "../parts/page";
import { Time } from "../parts/show";
import type { PlacedNote } from "./annotations";
import type { Catalog } from "./catalog";
import type { FieldRef } from "./state";

const SHOWN_MAX = 12;

interface AnnotationsProps {
  notes: PlacedNote[];
  fields: FieldRef[];
  catalog: Catalog;
  /** Where a new one is put at first: at the cursor, else at the end of the range. */
  at: number;
  zone: Zone;
  onChanged: () => void;
}

export function Annotations({ notes, fields, catalog, at, zone, onChanged }: AnnotationsProps) {
  const [adding, setAdding] = useState<number | null>(null);
  const [deleting, setDeleting] = useState<PlacedNote | null>(null);
  return (
    <Section
      title="Annotations in this range"
      actions={
        <IfMay>
          <Button icon="plus" small onClick={() => setAdding(at)}>
            Annotate
          </Button>
        </IfMay>
      }
    >
      {notes.length === 0 ? (
        <p class="hint">None. Note what happened, so that whoever looks at the chart knows.</p>
      ) : (
        <ul class="mark-list" aria-label="Annotations">
          {notes
            .slice(-SHOWN_MAX)
            .reverse()
            .map((note) => (
              <li key={note.id}>
                <span class="note-text">{note.text}</span>
                <Time at={note.annotation.at} />
                {note.annotation.until !== null && (
                  <>
                    <span aria-label="to">–</span>
                    <Time at={note.annotation.until} />
                  </>
                )}
                <IfMay>
                  <Button small look="quiet" onClick={() => setDeleting(note)}>
                    Delete
                  </Button>
                </IfMay>
              </li>
            ))}
        </ul>
      )}
      {notes.length > SHOWN_MAX && (
        <p class="hint">
          The newest {SHOWN_MAX} of {notes.length}; the chart shows all.
        </p>
      )}
      {adding !== null && (
        <AnnotationForm
          fields={fields}
          catalog={catalog}
          at={adding}
          zone={zone}
          onClose={() => setAdding(null)}
          onDone={() => {
            setAdding(null);
            onChanged();
          }}
        />
      )}
      {deleting !== null && (
        <Confirm
          title="Delete annotation"
          action="Delete annotation"
          onClose={() => setDeleting(null)}
          onConfirm={async () => {
            await deleteAnnotation(deleting.id);
            notify("Annotation deleted.");
            setDeleting(null);
            onChanged();
          }}
        >
          <p class="note-text">{deleting.text}</p>
        </Confirm>
      )}
    </Section>
  );
}

interface FormProps {
  fields: FieldRef[];
  catalog: Catalog;
  at: number;
  zone: Zone;
  onDone: () => void;
  onClose: () => void;
}

/** What a note can be about: each source on the chart, and its bucket. */
function subjectsOf(fields: FieldRef[], catalog: Catalog) {
  const sources = [...new Map(fields.map((ref) => [ref.sourceId, ref])).values()];
  const buckets = [...new Set(fields.map((ref) => ref.bucketId))];
  return [
    ...sources.map(({ bucketId, sourceId }) => ({
      value: `${bucketId} ${sourceId}`,
      label: catalog.byId.get(sourceId)?.name ?? sourceId,
    })),
    ...buckets.map((bucketId) => ({
      value: bucketId,
      label: `all of ${catalog.buckets.find(({ bucket }) => bucket._id === bucketId)?.bucket.name ?? bucketId}`,
    })),
  ];
}

function AnnotationForm({ fields, catalog, at, zone, onDone, onClose }: FormProps) {
  const subjects = subjectsOf(fields, catalog);
  const [subject, setSubject] = useState(subjects[0]?.value ?? "");
  const [text, setText] = useState("");
  const [from, setFrom] = useState(() => formatTime(at, zone));
  const [until, setUntil] = useState("");
  const { run, running, error } = useAction(async (form: HTMLFormElement) => {
    const [begin, end] = [typedMoment(from, zone, "from"), typedMoment(until, zone, "to")];
    if (begin === null || (end === null && until.trim() !== "")) return focusFault(form);
    const [bucketId = "", dataSourceId] = subject.split(" ");
    await createAnnotation({
      bucketId,
      ...(dataSourceId === undefined ? {} : { dataSourceId }),
      at: new Date(begin).toISOString(),
      ...(end === null ? {} : { until: new Date(end).toISOString() }),
      text,
    });
    notify("Annotation added.");
    onDone();
  });
  return (
    <Dialog title="New annotation" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(event.currentTarget);
        }}
      >
        <TextField
          label="Text"
          value={text}
          onInput={setText}
          required
          maxLength={2000}
          fault={faultAt(error, "text")}
        />
        <SelectField
          label="About"
          value={subject}
          onChange={setSubject}
          options={subjects}
          fault={faultAt(error, "dataSourceId")}
        />
        <div class="form-grid">
          <MomentField
            label="At"
            edge="from"
            example="now-2h"
            value={from}
            onInput={setFrom}
            required
            fault={faultAt(error, "at")}
          />
          <MomentField
            label="Until"
            edge="to"
            example="now-1h"
            value={until}
            onInput={setUntil}
            hint="Empty for a moment"
            fault={faultAt(error, "until")}
          />
        </div>
        <ErrorBox error={error} shownAt={(path) => ["text", "dataSourceId", "at", "until"].includes(path)} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            Add annotation
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
