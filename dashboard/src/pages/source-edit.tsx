/** A source, new or changed. */
import { useState } from "preact/hooks";
import { changeSource, createSource, getSource, type Source } from "../api/sources";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { go } from "../app/route";
import { Button, LinkButton } from "../parts/button";
import { CheckField, ErrorBox, SelectField, TextField, faultAt } from "../parts/forms";
import { Page, WhenLoaded } from "../parts/page";
import { useBucketTrail } from "./bucket-trail";
import { SchemaEditor, draftsOf, emptyField, schemaOf } from "./schema-editor";

export function NewSourcePage({ bucketId }: { bucketId: string }) {
  const trail = useBucketTrail(bucketId);
  return (
    <Page
      title="New source"
      trail={trail}
      intro="A sensor or an application, with the fields that it measures."
    >
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
      intro="Fields may be added; those there are keep their name and type, as points bear them."
    >
      <WhenLoaded loaded={source} what="source">
        {(data) => <SourceForm bucketId={bucketId} source={data} />}
      </WhenLoaded>
    </Page>
  );
}

function SourceForm({ bucketId, source }: { bucketId: string; source: Source | null }) {
  const [name, setName] = useState(source?.name ?? "");
  const [type, setType] = useState(source?.type ?? "sensor");
  const [description, setDescription] = useState(source?.description ?? "");
  const [fields, setFields] = useState(source === null ? [emptyField()] : draftsOf(source.schema));
  const [extend, setExtend] = useState(source?.schemaMode === "extend");
  const [downsampling, setDownsampling] = useState(source?.downsampling ?? true);
  const [active, setActive] = useState(source?.status !== "inactive");
  const { run, running, error } = useAction(async () => {
    const body = {
      name,
      type,
      description,
      schema: schemaOf(fields),
      schemaMode: extend ? ("extend" as const) : ("strict" as const),
      downsampling,
    };
    const saved =
      source === null
        ? await createSource(bucketId, body)
        : await changeSource(bucketId, source._id, { ...body, status: active ? "active" : "inactive" });
    notify(source === null ? `Source “${saved.name}” created.` : `Source “${saved.name}” saved.`);
    go(`#/buckets/${bucketId}/sources/${saved._id}`);
  });
  const named = new Set(fields.map((field) => `schema.${field.name.trim()}`));
  const shownAt = (at: string) =>
    ["name", "type", "description"].includes(at) ||
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
      <div class="form-grid">
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          required
          maxLength={200}
          fault={faultAt(error, "name")}
        />
        <SelectField
          label="Type"
          value={type}
          onChange={setType}
          options={[...new Set(["sensor", "application", "service", type])]}
          fault={faultAt(error, "type")}
        />
        <TextField
          label="Description"
          class="span"
          value={description}
          onInput={setDescription}
          fault={faultAt(error, "description")}
        />
      </div>
      <SchemaEditor drafts={fields} onChange={setFields} error={error} />
      <CheckField
        label="Add undeclared fields as they come"
        hint="Else a point with a field that is not declared is refused."
        checked={extend}
        onChange={setExtend}
      />
      <CheckField
        label="Average large raw queries"
        hint="Queries for more than about 500 points get averages with their least and greatest values; off: always the points themselves."
        checked={downsampling}
        onChange={setDownsampling}
      />
      {source !== null && (
        <CheckField label="Active" hint="An inactive source takes no data." checked={active} onChange={setActive} />
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
