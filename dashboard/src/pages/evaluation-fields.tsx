/** The evaluation block of a rule, to fill in; each fault of the server stands at its own field. */
import type { Source } from "../api/sources";
import { AGGREGATIONS, GROUPINGS } from "../api/query";
import { formatSpan } from "../app/format";
import { Button } from "../parts/button";
import { SelectField, TextField, faultAt } from "../parts/forms";
import { KINDS, emptyInput, type InputDraft, type ParameterDraft, type RuleDraft } from "./rule-draft";

interface EvaluationFieldsProps {
  draft: RuleDraft;
  sources: Source[];
  error: Error | null;
  onChange: (part: Partial<RuleDraft>) => void;
}

const GROUPINGS_OFFERED = AGGREGATIONS.flatMap((aggregation) =>
  GROUPINGS.map((groupBy) => ({ value: `${aggregation} ${groupBy}`, label: `${aggregation} by ${groupBy}` })),
);

export function EvaluationFields({ draft, sources, error, onChange }: EvaluationFieldsProps) {
  const known = KINDS[draft.kind];
  const span = (text: string) => {
    const seconds = Number(text);
    return text.trim() !== "" && Number.isFinite(seconds) ? formatSpan(seconds) : undefined;
  };
  return (
    <>
      <div class="kind-row">
        <TextField
          label="Kind"
          value={draft.kind}
          maxLength={64}
          mono
          onInput={(kind) => onChange({ kind })}
          hint={known === undefined ? "Evaluators pick rules by it; yours may have kinds of its own" : known.hint}
          fault={faultAt(error, "evaluation.kind")}
        />
        <div class="field">
          <span class="label">Of the reference evaluator</span>
          <div class="segments wrap" role="group" aria-label="Kinds of the reference evaluator">
            {Object.entries(KINDS).map(([kind, { parameters }]) => (
              <button
                type="button"
                key={kind}
                aria-pressed={draft.kind === kind}
                onClick={() => onChange({ kind, parameters })}
              >
                {kind}
              </button>
            ))}
          </div>
        </div>
      </div>
      <div class="form-grid">
        <TextField
          label="Judged every (seconds)"
          type="number"
          step="any"
          value={draft.intervalSeconds}
          onInput={(intervalSeconds) => onChange({ intervalSeconds })}
          hint={span(draft.intervalSeconds)}
          fault={faultAt(error, "evaluation.intervalSeconds")}
        />
        <TextField
          label="Window (seconds)"
          type="number"
          step="any"
          value={draft.windowSeconds}
          onInput={(windowSeconds) => onChange({ windowSeconds })}
          hint={span(draft.windowSeconds)}
          fault={faultAt(error, "evaluation.windowSeconds")}
        />
        <TextField
          label="Clears after (seconds)"
          type="number"
          step="any"
          value={draft.dwellSeconds}
          onInput={(dwellSeconds) => onChange({ dwellSeconds })}
          hint={span(draft.dwellSeconds) ?? "Empty: as long as the window"}
          fault={faultAt(error, "evaluation.dwellSeconds")}
        />
      </div>
      <Inputs draft={draft} sources={sources} error={error} onChange={onChange} />
      <Parameters draft={draft} error={error} onChange={onChange} />
    </>
  );
}

function Inputs({ draft, sources, error, onChange }: EvaluationFieldsProps) {
  const change = (index: number, part: Partial<InputDraft>) =>
    onChange({ inputs: draft.inputs.map((input, at) => (at === index ? { ...input, ...part } : input)) });
  return (
    <fieldset class="rows-editor">
      <legend>Inputs</legend>
      {faultAt(error, "evaluation.inputs") && <p class="fault">{faultAt(error, "evaluation.inputs")}</p>}
      {draft.inputs.map((input, index) => {
        const path = `evaluation.inputs.${index}`;
        const source = sources.find((other) => other._id === (input.sourceId === "" ? draft.sourceId : input.sourceId));
        const fields = Object.keys(source?.schema ?? {});
        const offered = input.field === "" || fields.includes(input.field) ? fields : [...fields, input.field];
        const grouping = faultAt(error, `${path}.aggregation`) ?? faultAt(error, `${path}.groupBy`);
        return (
          <div class="editor-row input-row" role="group" aria-label={`Input ${index + 1}`} key={index}>
            <TextField
              label="Key"
              mono
              value={input.key}
              onInput={(key) => change(index, { key })}
              fault={faultAt(error, `${path}.key`)}
            />
            <SelectField
              label="Field"
              value={input.field}
              onChange={(field) => change(index, { field })}
              options={[{ value: "", label: "choose a field" }, ...offered]}
              fault={faultAt(error, `${path}.field`)}
            />
            <SelectField
              label="Source"
              value={input.sourceId}
              onChange={(sourceId) => change(index, { sourceId })}
              options={[
                { value: "", label: "the rule's own" },
                ...sources.map((other) => ({ value: other._id, label: other.name })),
              ]}
              fault={faultAt(error, `${path}.dataSourceId`)}
            />
            <SelectField
              label="Rows"
              value={input.grouping}
              onChange={(chosen) => change(index, { grouping: chosen })}
              options={[{ value: "", label: "points" }, ...GROUPINGS_OFFERED]}
              fault={grouping}
            />
            <TextField
              label="Window (s)"
              type="number"
              step="any"
              value={input.windowSeconds}
              placeholder="rule's"
              onInput={(windowSeconds) => change(index, { windowSeconds })}
              fault={faultAt(error, `${path}.windowSeconds`)}
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
      {draft.inputs.length < 10 && (
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

function Parameters({ draft, error, onChange }: Omit<EvaluationFieldsProps, "sources">) {
  const change = (index: number, part: Partial<ParameterDraft>) =>
    onChange({
      parameters: draft.parameters.map((parameter, at) => (at === index ? { ...parameter, ...part } : parameter)),
    });
  return (
    <fieldset class="rows-editor">
      <legend>Parameters</legend>
      {draft.parameters.map((parameter, index) => (
        <div class="editor-row parameter-row" role="group" aria-label={`Parameter ${index + 1}`} key={index}>
          <TextField
            label={`Name of parameter ${index + 1}`}
            labelHidden
            mono
            placeholder="name"
            value={parameter.name}
            onInput={(name) => change(index, { name })}
          />
          <SelectField
            label={`Type of parameter ${index + 1}`}
            labelHidden
            value={parameter.type}
            onChange={(type) => change(index, { type: type as ParameterDraft["type"] })}
            options={["number", "string", "boolean"]}
          />
          {parameter.type === "boolean" ? (
            <SelectField
              label={`Value of parameter ${index + 1}`}
              labelHidden
              value={parameter.value === "true" ? "true" : "false"}
              onChange={(value) => change(index, { value })}
              options={["true", "false"]}
            />
          ) : (
            <TextField
              label={`Value of parameter ${index + 1}`}
              labelHidden
              placeholder="value"
              value={parameter.value}
              onInput={(value) => change(index, { value })}
              fault={faultAt(error, `evaluation.parameters.${parameter.name.trim()}`)}
            />
          )}
          <Button
            icon="close"
            look="quiet"
            label={`Remove parameter ${index + 1}`}
            onClick={() => onChange({ parameters: draft.parameters.filter((_, at) => at !== index) })}
          />
        </div>
      ))}
      <Button
        icon="plus"
        small
        onClick={() => onChange({ parameters: [...draft.parameters, { name: "", type: "number", value: "" }] })}
      >
        Add a parameter
      </Button>
    </fieldset>
  );
}
