/** Fields of a schema as rows to fill in. Of declared fields only what the API lets change can be changed. */
import { useEffect, useRef } from "preact/hooks";
import type { FieldType, Schema } from "../api/sources";
import { Button } from "../parts/button";
import { SelectField, TextField, faultAt } from "../parts/forms";

export interface FieldDraft {
  name: string;
  type: FieldType;
  unit: string;
  description: string;
  /** Already in the schema: its name and type stay. */
  declared: boolean;
}

export const emptyField = (): FieldDraft => ({ name: "", type: "number", unit: "", description: "", declared: false });

export const draftsOf = (schema: Schema): FieldDraft[] =>
  Object.entries(schema).map(([name, { type, unit = "", description = "" }]) => ({
    name,
    type,
    unit,
    description,
    declared: true,
  }));

/** The schema that the rows say; rows without a name are not there yet. */
export function schemaOf(drafts: FieldDraft[]): Schema {
  const entries = drafts
    .filter((draft) => draft.name.trim() !== "")
    .map(({ name, type, unit, description }) => [
      name.trim(),
      {
        type,
        ...(unit.trim() === "" ? {} : { unit: unit.trim() }),
        ...(description.trim() === "" ? {} : { description: description.trim() }),
      },
    ]);
  // Not by assignment: a field may be called __proto__.
  return Object.fromEntries(entries) as Schema;
}

interface SchemaEditorProps {
  drafts: FieldDraft[];
  onChange: (drafts: FieldDraft[]) => void;
  error: Error | null;
}

export function SchemaEditor({ drafts, onChange, error }: SchemaEditorProps) {
  const change = (index: number, part: Partial<FieldDraft>) =>
    onChange(drafts.map((draft, at) => (at === index ? { ...draft, ...part } : draft)));
  const rows = useRef<HTMLFieldSetElement>(null);
  const added = useRef(false);
  // Who adds a field types its name next.
  useEffect(() => {
    if (!added.current) return;
    added.current = false;
    rows.current?.querySelector<HTMLInputElement>(".schema-row:last-of-type input")?.focus();
  }, [drafts.length]);
  return (
    <fieldset class="rows-editor" ref={rows}>
      <legend>Fields</legend>
      {drafts.map((draft, index) => {
        const path = `schema.${draft.name.trim()}`;
        const which = draft.name.trim() === "" ? `of field ${index + 1}` : `of ${draft.name.trim()}`;
        return (
          <div class="editor-row schema-row" role="group" aria-label={`Field ${index + 1}`} key={index}>
            <TextField
              label={`Name ${draft.declared ? which : `of field ${index + 1}`}`}
              labelHidden
              placeholder="name"
              mono
              value={draft.name}
              disabled={draft.declared}
              maxLength={128}
              onInput={(name) => change(index, { name })}
              fault={draft.name.trim() === "" ? null : faultAt(error, path)}
            />
            <SelectField
              label={`Type ${which}`}
              labelHidden
              value={draft.type}
              disabled={draft.declared}
              onChange={(type) => change(index, { type: type as FieldType })}
              options={["number", "string", "boolean"]}
              fault={faultAt(error, `${path}.type`)}
            />
            <TextField
              label={`Unit ${which}`}
              labelHidden
              placeholder="unit"
              value={draft.unit}
              onInput={(unit) => change(index, { unit })}
              fault={faultAt(error, `${path}.unit`)}
            />
            <TextField
              label={`Description ${which}`}
              labelHidden
              placeholder="description"
              value={draft.description}
              onInput={(description) => change(index, { description })}
              fault={faultAt(error, `${path}.description`)}
            />
            <Button
              icon="close"
              look="quiet"
              label={draft.declared ? "A declared field stays" : `Remove field ${index + 1}`}
              disabled={draft.declared || drafts.length === 1}
              onClick={() => onChange(drafts.filter((_, at) => at !== index))}
            />
          </div>
        );
      })}
      <Button icon="plus" small onClick={() => ((added.current = true), onChange([...drafts, emptyField()]))}>
        Add a field
      </Button>
    </fieldset>
  );
}
