/** What a panel asks, as fields: bucket, sources, fields, groups and dimensions. */
import type { BoardContent, PanelKind } from "../api/boards";
import { AGGREGATIONS, GROUPINGS } from "../api/query";
import type { Catalog } from "../explorer/catalog";
import { ConditionFields, GroupFields, useNamed } from "../explorer/dimension-fields";
import { TOP_DEFAULT } from "../explorer/dimensions";
import { CheckField, SelectField } from "../parts/forms";
import type { QueryForm } from "./query-form";

interface QueryFieldsProps {
  form: QueryForm;
  kind: PanelKind;
  board: BoardContent;
  catalog: Catalog;
  /** Faults are shown. */
  tried: boolean;
  onChange: (form: QueryForm) => void;
}

export function QueryFields({ form, kind, board, catalog, tried, onChange }: QueryFieldsProps) {
  const variables = board.variables.map(({ name }) => ({ value: `$${name}`, label: `$${name}` }));
  const { buckets } = catalog;
  const known = buckets.map(({ bucket }) => ({ value: bucket._id, label: bucket.name }));
  const others = [...known, ...variables].some(({ value }) => value === form.bucketId);
  const options = [...known, ...variables, ...(others ? [] : [{ value: form.bucketId, label: form.bucketId }])];
  const sources = buckets.find(({ bucket }) => bucket._id === form.bucketId)?.sources ?? [];
  // A variable may stand for any of them.
  const any = form.sourceIds.length === 0 || form.sourceIds.some((id) => id.startsWith("$"));
  const picked = sources.filter(({ _id }) => any || form.sourceIds.includes(_id));
  const fields = [...new Set([...picked.flatMap(({ schema }) => Object.keys(schema)), ...form.fields])].sort();
  const named = useNamed(picked) ?? [];
  const dimensions = {
    named,
    value: form,
    tried,
    onChange: (part: Partial<QueryForm>) => onChange(regrouped({ ...form, ...part }, form)),
  };
  const hasDimensions = named.length > 0 || form.conditions.length + form.groups.length > 0;
  const toggled = (list: string[], value: string, on: boolean) =>
    on ? [...list, value] : list.filter((one) => one !== value);
  return (
    <>
      <SelectField
        label="Bucket"
        value={form.bucketId}
        options={options}
        onChange={(bucketId) => onChange({ ...form, bucketId, sourceIds: [], fields: [], conditions: [], groups: [] })}
      />
      {kind !== "rules" && (
        <>
          <fieldset class="choice-list">
            <legend>Data sources (all when none is chosen)</legend>
            {[...sources.map(({ _id, name }) => ({ value: _id, label: name })), ...variables].map(({ value, label }) => (
              <CheckField
                key={value}
                label={label}
                checked={form.sourceIds.includes(value)}
                onChange={(on) => onChange({ ...form, sourceIds: toggled(form.sourceIds, value, on) })}
              />
            ))}
          </fieldset>
          <fieldset class="choice-list">
            <legend>Fields (all when none is chosen)</legend>
            {fields.map((field) => (
              <CheckField
                key={field}
                label={field}
                checked={form.fields.includes(field)}
                onChange={(on) => onChange({ ...form, fields: toggled(form.fields, field, on) })}
              />
            ))}
          </fieldset>
          <div class="field-row">
            <SelectField
              label="Aggregation"
              value={form.aggregation}
              options={[{ value: "", label: "as the screen needs it" }, { value: "band", label: "avg with its band" }, ...AGGREGATIONS]}
              onChange={(aggregation) =>
                onChange({ ...form, aggregation, groupBy: form.groupBy === "" && aggregation !== "" ? "hour" : form.groupBy })
              }
            />
            {form.aggregation !== "" && (
              <SelectField
                label="In steps of"
                value={form.groupBy}
                options={[...new Set([...GROUPINGS, "all", form.groupBy])]}
                onChange={(groupBy) => onChange({ ...form, groupBy })}
              />
            )}
          </div>
          <CheckField
            label="All sources together"
            checked={form.merge}
            disabled={form.aggregation === ""}
            onChange={(merge) => onChange({ ...form, merge })}
          />
          {hasDimensions && (
            <>
              <GroupFields {...dimensions} optional />
              <ConditionFields {...dimensions} variables={variables.map(({ value }) => value)} />
            </>
          )}
        </>
      )}
    </>
  );
}

/** Groups are those of steps, and not of thousands of lines unless somebody says so. */
function regrouped(form: QueryForm, before: QueryForm): QueryForm {
  if (form.groups.length === 0 || before.groups.length > 0) return form;
  const top = form.top === "" && form.fields.length > 0 ? String(TOP_DEFAULT) : form.top;
  if (form.aggregation !== "") return { ...form, top };
  return { ...form, top, aggregation: "avg", groupBy: form.groupBy === "" ? "hour" : form.groupBy };
}
