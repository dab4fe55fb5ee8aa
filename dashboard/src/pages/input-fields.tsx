/** Inputs and times of a rule. Only fields that the rule's kind can evaluate are offered. */
import type { Aggregation, GroupBy } from "../api/query";
import type { FieldType } from "../api/sources";
import { formatSpan } from "../app/format";
import { Button } from "../parts/button";
import { NumberField, SelectField, TextField, faultAt } from "../parts/forms";
import { emptyInput, sourceOf, type InputDraft, type KnownSource, type RuleDraft } from "./rule-draft";
import { KINDS } from "./rule-kinds";

export interface RuleFieldsProps {
  draft: RuleDraft;
  sources: KnownSource[];
  error: Error | null;
  onChange: (part: Partial<RuleDraft>) => void;
}

const AGGREGATIONS: Aggregation[] = ["avg", "sum", "min", "max", "count"];
const GROUPINGS: GroupBy[] = ["minute", "hour", "day", "week", "month"];

/** Anything can be counted; only numbers have averages and the like. */
const groupingsOf = (type: FieldType | undefined) =>
  AGGREGATIONS.filter((aggregation) => type === undefined || type === "number" || aggregation === "count").flatMap(
    (aggregation) =>
      GROUPINGS.map((groupBy) => ({ value: `${aggregation} ${groupBy}`, label: `${aggregation} by ${groupBy}` })),
  );

/** Points or groups, and the present choice in any case: a rule of another client may have a step that is not offered. */
function rowsOf(draft: RuleDraft, input: InputDraft, type: FieldType | undefined) {
  const options = [{ value: "", label: "points" }, ...(draft.kind === "absence" ? [] : groupingsOf(type))];
  const isOffered = options.some((option) => option.value === input.grouping);
  return isOffered
    ? options
    : [...options, { value: input.grouping, label: input.grouping.replace(" ", " by ") }];
}

const INPUTS_MAX = 10;

export function Inputs({ draft, sources, error, onChange }: RuleFieldsProps) {
  const change = (index: number, part: Partial<InputDraft>) =>
    onChange({ inputs: draft.inputs.map((input, at) => (at === index ? { ...input, ...part } : input)) });
  return (
    <fieldset class="rows-editor">
      <legend>What it looks at</legend>
      {faultAt(error, "evaluation.inputs") && <p class="fault">{faultAt(error, "evaluation.inputs")}</p>}
      {draft.inputs.map((input, index) => {
        const path = `evaluation.inputs.${index}`;
        const schema = sourceOf(draft, input, sources)?.schema ?? {};
        const grouping = faultAt(error, `${path}.aggregation`) ?? faultAt(error, `${path}.groupBy`);
        return (
          <div class="editor-row input-row" role="group" aria-label={`Input ${index + 1}`} key={index}>
            <SelectField
              label="Field"
              value={input.field}
              onChange={(field) => change(index, { field, ...fitting(input, schema[field]?.type) })}
              options={[{ value: "", label: "choose a field" }, ...offered(draft, input, schema)]}
              fault={faultAt(error, `${path}.field`)}
            />
            <SelectField
              label="Rows"
              value={input.grouping}
              onChange={(chosen) => change(index, { grouping: chosen })}
              options={rowsOf(draft, input, schema[input.field]?.type)}
              fault={grouping}
            />
            <SelectField
              label="Source"
              value={input.sourceId}
              onChange={(sourceId) => change(index, { sourceId, field: "" })}
              options={[
                { value: "", label: "same as the rule" },
                ...sources.map((other) => ({ value: other._id, label: other.name })),
              ]}
              fault={faultAt(error, `${path}.dataSourceId`)}
            />
            <NumberField
              label="Window (s)"
              value={input.windowSeconds}
              placeholder="rule's"
              onInput={(windowSeconds) => change(index, { windowSeconds })}
              fault={faultAt(error, `${path}.windowSeconds`)}
            />
            <TextField
              label="Key"
              mono
              value={input.key}
              onInput={(key) => change(index, { key })}
              fault={faultAt(error, `${path}.key`)}
            />
            <Button
              icon="close"
              look="quiet"
              label={`Remove input ${index + 1}`}
              disabled={draft.inputs.length === 1}
              onClick={() => onChange({ inputs: draft.inputs.filter((_, at) => at !== index) })}
            />
          </div>
        );
      })}
      {draft.inputs.length < INPUTS_MAX && (
        <Button
          icon="plus"
          small
          onClick={() => onChange({ inputs: [...draft.inputs, emptyInput("", `x${draft.inputs.length + 1}`)] })}
        >
          Add an input
        </Button>
      )}
    </fieldset>
  );
}

/** The fields that the kind can evaluate, and the selected one in any case. */
function offered(draft: RuleDraft, input: InputDraft, schema: KnownSource["schema"]) {
  const types: readonly FieldType[] = draft.kind === null ? KINDS.threshold.types : KINDS[draft.kind].types;
  const names = Object.keys(schema).filter((name) => types.includes(schema[name]!.type) || name === input.field);
  if (input.field !== "" && !names.includes(input.field)) names.push(input.field);
  return names.map((name) => {
    const { type, unit } = schema[name] ?? { type: "gone", unit: undefined };
    return { value: name, label: `${name} (${unit ?? type})` };
  });
}

/** Averages of what is no number would be refused. */
const fitting = (input: InputDraft, type: FieldType | undefined): Partial<InputDraft> =>
  type !== "number" && input.grouping !== "" && !input.grouping.startsWith("count ") ? { grouping: "" } : {};

export function Times({ draft, sources, error, onChange }: RuleFieldsProps) {
  const span = (text: string) => (Number(text) > 0 ? formatSpan(Number(text)) : undefined);
  const pace = sources.find((source) => source._id === draft.sourceId)?.stats?.averageIntervalSeconds ?? null;
  const points = pace === null || !(pace > 0) ? null : Math.floor(Number(draft.windowSeconds) / pace);
  const window = span(draft.windowSeconds);
  return (
    <div class="form-grid">
      <NumberField
        label="Evaluated every (seconds)"
        value={draft.intervalSeconds}
        onInput={(intervalSeconds) => onChange({ intervalSeconds })}
        hint={span(draft.intervalSeconds)}
        fault={faultAt(error, "evaluation.intervalSeconds")}
      />
      <NumberField
        label="Window (seconds)"
        value={draft.windowSeconds}
        onInput={(windowSeconds) => onChange({ windowSeconds })}
        hint={window === undefined || points === null ? window : `${window}, about ${points} points of this source`}
        fault={faultAt(error, "evaluation.windowSeconds")}
      />
      <NumberField
        label="Clears after (seconds)"
        value={draft.dwellSeconds}
        onInput={(dwellSeconds) => onChange({ dwellSeconds })}
        hint={span(draft.dwellSeconds) ?? "If empty, the length of the window"}
        fault={faultAt(error, "evaluation.dwellSeconds")}
      />
    </div>
  );
}
