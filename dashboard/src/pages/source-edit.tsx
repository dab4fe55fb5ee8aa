/** A source, new or changed. */
import { changeSource, createSource, getSource, type Source } from "../api/sources";
import { useDraft } from "../app/draft";
import { numberOf } from "../app/format";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { go } from "../app/route";
import { Button, LinkButton } from "../parts/button";
import { DurationField } from "../parts/duration";
import { CheckField, ErrorBox, SelectField, TextField, faultAt } from "../parts/forms";
import { Restored } from "../parts/restored";
import { Page, WhenLoaded } from "../parts/page";
import { useBucketTrail } from "./bucket-trail";
import { DimensionsFields } from "./source-dimensions-fields";
import { dimensionsOf, draftOfDimensions, isSameDimensions } from "./source-dimensions-draft";
import { SchemaEditor, draftsOf, emptyField, schemaOf } from "./schema-editor";

const EXPECTED_HINT =
  "Such as 30s or 5m. After three of them without a point the source is silent, and webhooks get source.stale. " +
  "If empty, no points are expected.";

export function NewSourcePage({ bucketId }: { bucketId: string }) {
  const trail = useBucketTrail(bucketId);
  return (
    <Page title="New source" trail={trail} intro="A sensor or an application, with the fields that it sends.">
      <SourceForm bucketId={bucketId} source={null} />
    </Page>
  );
}

export function EditSourcePage({ bucketId, sourceId }: { bucketId: string; sourceId: string }) {
  const source = useLoad(`source ${sourceId}`, (signal) => getSource(bucketId, sourceId, signal));
  const trail = useBucketTrail(bucketId);
  return (
    <Page
      title="Edit source"
      trail={trail}
      intro="Fields can be added. Existing fields keep their name and type, because stored points use them."
    >
      <WhenLoaded loaded={source} what="source">
        {(data) => <SourceForm bucketId={bucketId} source={data} />}
      </WhenLoaded>
    </Page>
  );
}

const startOf = (source: Source | null) => ({
  name: source?.name ?? "",
  type: source?.type ?? "sensor",
  description: source?.description ?? "",
  fields: source === null ? [emptyField()] : draftsOf(source.schema),
  extend: source?.schemaMode === "extend",
  downsampling: source?.downsampling ?? true,
  dimensions: draftOfDimensions(source?.dimensions ?? null),
  duplicates: source?.duplicates ?? ("keep" as const),
  active: source?.status !== "inactive",
  expected: source?.expectedIntervalSeconds?.toString() ?? "",
});

function SourceForm({ bucketId, source }: { bucketId: string; source: Source | null }) {
  const typed = useDraft(source === null ? `source in ${bucketId}` : `source ${source._id}`, startOf(source));
  const { value, change } = typed;
  const { run, running, error } = useAction(async () => {
    const { name, type, description, fields, extend, downsampling, active, expected, duplicates } = value;
    const dimensions = dimensionsOf(value.dimensions, source?.dimensions);
    const body = {
      name,
      type,
      description,
      schema: schemaOf(fields),
      schemaMode: extend ? ("extend" as const) : ("strict" as const),
      downsampling,
      // What stays is not said: others may have sent points meanwhile, and then no change is taken.
      ...(isSameDimensions(source?.dimensions ?? null, dimensions) ? {} : { dimensions }),
      duplicates,
      expectedIntervalSeconds: expected.trim() === "" ? null : (numberOf(expected) ?? expected),
    };
    const saved =
      source === null
        ? await createSource(bucketId, body)
        : await changeSource(bucketId, source._id, { ...body, status: active ? "active" : "inactive" });
    typed.done();
    notify(source === null ? `Source “${saved.name}” created.` : `Source “${saved.name}” saved.`);
    go(`#/buckets/${bucketId}/sources/${saved._id}`);
  });
  const named = new Set(value.fields.map((field) => `schema.${field.name.trim()}`));
  const shownAt = (at: string) =>
    ["name", "type", "description", "expectedIntervalSeconds", "duplicates"].includes(at) ||
    /^dimensions(\.\d+)?$/.test(at) ||
    [...named].some((path) => at === path || [".type", ".unit", ".description"].some((end) => at === path + end));
  const back = source === null ? `#/buckets/${bucketId}/sources` : `#/buckets/${bucketId}/sources/${source._id}`;
  return (
    <form
      class="card form"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <Restored draft={typed} />
      <div class="form-grid">
        <TextField
          label="Name"
          value={value.name}
          onInput={(name) => change({ name })}
          required
          maxLength={200}
          fault={faultAt(error, "name")}
        />
        <SelectField
          label="Type"
          value={value.type}
          onChange={(type) => change({ type })}
          options={[...new Set(["sensor", "application", "service", value.type])]}
          fault={faultAt(error, "type")}
        />
        <TextField
          label="Description"
          class="span"
          value={value.description}
          onInput={(description) => change({ description })}
          fault={faultAt(error, "description")}
        />
        <DurationField
          label="Expected interval"
          hint={EXPECTED_HINT}
          seconds={value.expected}
          onInput={(expected) => change({ expected })}
          fault={faultAt(error, "expectedIntervalSeconds")}
        />
      </div>
      <SchemaEditor drafts={value.fields} onChange={(fields) => change({ fields })} error={error} />
      <DimensionsFields
        source={source}
        draft={value.dimensions}
        duplicates={value.duplicates}
        error={error}
        onDraft={(dimensions) => change({ dimensions })}
        onDuplicates={(duplicates) => change({ duplicates })}
      />
      <CheckField
        label="Add undeclared fields automatically"
        hint="Otherwise a point with an undeclared field is refused."
        checked={value.extend}
        onChange={(extend) => change({ extend })}
      />
      <CheckField
        label="Average large raw queries"
        hint="Queries for more than about 500 points return averages with minimum and maximum."
        checked={value.downsampling}
        onChange={(downsampling) => change({ downsampling })}
      />
      {source !== null && (
        <CheckField
          label="Active"
          hint="An inactive source refuses points."
          checked={value.active}
          onChange={(active) => change({ active })}
        />
      )}
      <ErrorBox error={error} shownAt={shownAt} />
      <div class="actions end">
        <LinkButton href={back}>Cancel</LinkButton>
        <Button type="submit" look="primary" busy={running}>
          {source === null ? "Create source" : "Save"}
        </Button>
      </div>
    </form>
  );
}
