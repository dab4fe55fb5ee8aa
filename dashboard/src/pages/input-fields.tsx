/** Inputs and times of a rule. Only fields that the rule's kind can evaluate are offered. */
import { useId } from "preact/hooks";
import type { FieldType } from "../api/sources";
import { formatSpan, sentence } from "../app/format";
import { Lazy } from "../app/lazy";
import { Button } from "../parts/button";
import { DurationField } from "../parts/duration";
import { SelectField, TextField, faultAt } from "../parts/forms";
import type { InputSeriesProps } from "./input-series";
import { emptyInput, sourceOf, type InputDraft, type KnownSource, type RuleDraft } from "./rule-draft";
import { STEPS, aggregationOf, aggregationsOf, covers, stepFault, stepOf } from "./rule-groups";
import { KINDS } from "./rule-kinds";

export interface RuleFieldsProps {
  draft: RuleDraft;
  sources: KnownSource[];
  error: Error | null;
  onChange: (part: Partial<RuleDraft>) => void;
}

/** Points, or what groups come to; the present choice in any case, as a rule of another client may have `p90`. */
function rowsOf(draft: RuleDraft, input: InputDraft, type: FieldType | undefined) {
  const offered = draft.kind === "absence" ? [] : aggregationsOf(type);
  const present = aggregationOf(input.grouping);
  const names = present === "" || offered.includes(present) ? offered : [...offered, present];
  return [{ value: "", label: "points" }, ...names];
}

/** A step that was typed stays when another aggregation is chosen. */
const regrouped = ({ grouping }: InputDraft, aggregation: string): string =>
  aggregation === "" ? "" : `${aggregation} ${grouping === "" ? STEPS[0]! : stepOf(grouping)}`;

const INPUTS_MAX = 10;

export function Inputs({ draft, sources, error, onChange }: RuleFieldsProps) {
  const steps = useId();
  const change = (index: number, part: Partial<InputDraft>) =>
    onChange({ inputs: draft.inputs.map((input, at) => (at === index ? { ...input, ...part } : input)) });
  return (
    <fieldset class="rows-editor">
      <legend>What it looks at</legend>
      <datalist id={steps}>
        {STEPS.map((step) => (
          <option key={step} value={step} />
        ))}
      </datalist>
      {faultAt(error, "evaluation.inputs") && <p class="fault">{faultAt(error, "evaluation.inputs")}</p>}
      {draft.inputs.map((input, index) => {
        const path = `evaluation.inputs.${index}`;
        const schema = sourceOf(draft, input, sources)?.schema ?? {};
        return (
          <div class="editor-row input-row" role="group" aria-label={`Input ${index + 1}`} key={index}>
            <SelectField
              label="Field"
              value={input.field}
              onChange={(field) => change(index, { field, ...fitting(input, schema[field]?.type) })}
              options={[{ value: "", label: "choose a field" }, ...offered(draft, input, schema)]}
              fault={faultAt(error, `${path}.field`)}
            />
            <div class="rows-and-step">
              <SelectField
                label="Rows"
                value={aggregationOf(input.grouping)}
                onChange={(chosen) => change(index, { grouping: regrouped(input, chosen) })}
                options={rowsOf(draft, input, schema[input.field]?.type)}
                fault={faultAt(error, `${path}.aggregation`)}
              />
              {input.grouping !== "" && (
                <TextField
                  label="Step"
                  value={stepOf(input.grouping)}
                  onInput={(step) =>
                    change(index, { grouping: `${aggregationOf(input.grouping)} ${step.replace(/\s/g, "")}` })
                  }
                  list={steps}
                  fault={stepFault(stepOf(input.grouping)) ?? faultAt(error, `${path}.groupBy`)}
                />
              )}
            </div>
            <SelectField
              label="Source"
              value={input.sourceId}
              onChange={(sourceId) => change(index, { sourceId, field: "", conditions: [], groups: [] })}
              options={[
                { value: "", label: "same as the rule" },
                ...sources.map((other) => ({ value: other._id, label: other.name })),
              ]}
              fault={faultAt(error, `${path}.dataSourceId`)}
            />
            <DurationField
              label="Own window"
              seconds={input.windowSeconds}
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
            <Series
              draft={draft}
              input={input}
              source={sourceOf(draft, input, sources)}
              fault={faultAt(error, `${path}.dimensions`) ?? faultAt(error, `${path}.groupByDimensions`)}
              onChange={(part) => change(index, part)}
            />
          </div>
        );
      })}
      {draft.kind !== null && (draft.inputs.length > 1 || draft.condition.inputs !== "any") && (
        <SelectField
          label="It fires when"
          value={draft.condition.inputs}
          onChange={(inputs) => onChange({ condition: { ...draft.condition, inputs } })}
          options={[
            { value: "any", label: "any of the inputs is met" },
            { value: "all", label: "all inputs are met" },
          ]}
          fault={faultAt(error, "evaluation.parameters.inputs")}
        />
      )}
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

/** Few rules need it. */
const LazySeries = (props: InputSeriesProps) => (
  <Lazy name="input series" what="dimensions" load={async () => (await import("./input-series")).InputSeries} props={props} />
);

interface SeriesProps {
  draft: RuleDraft;
  input: InputDraft;
  source: KnownSource | undefined;
  fault: string | null;
  onChange: InputSeriesProps["onChange"];
}

/** Nothing where the source has no dimensions. */
function Series({ draft, input, source, fault, onChange }: SeriesProps) {
  const { conditions = [], groups = [], kept } = input;
  const isSplit = (source?.dimensions ?? null) !== null || conditions.length > 0 || groups.length > 0;
  if (source === undefined || !isSplit) return null;
  return (
    <div class="input-series">
      <LazySeries
        bucketId={draft.bucketId}
        source={source}
        conditions={kept.dimensions === undefined ? conditions : null}
        groups={input.grouping === "" ? null : groups}
        fault={fault}
        onChange={onChange}
      />
      {kept.dimensions !== undefined && (
        <p class="hint">Only some series, as another client has said it; it stays as it is.</p>
      )}
      {fault !== null && <p class="fault">{sentence(fault)}</p>}
    </div>
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
  input.grouping !== "" && !covers(aggregationOf(input.grouping), type) ? { grouping: "" } : {};

export function Times({ draft, sources, error, onChange }: RuleFieldsProps) {
  const span = (text: string) => (Number(text) > 0 ? formatSpan(Number(text)) : undefined);
  const pace = sources.find((source) => source._id === draft.sourceId)?.stats?.averageIntervalSeconds ?? null;
  const points = pace === null || !(pace > 0) ? null : Math.floor(Number(draft.windowSeconds) / pace);
  const window = span(draft.windowSeconds);
  return (
    <div class="form-grid">
      <DurationField
        label="Evaluated every"
        seconds={draft.intervalSeconds}
        onInput={(intervalSeconds) => onChange({ intervalSeconds })}
        fault={faultAt(error, "evaluation.intervalSeconds")}
      />
      <DurationField
        label="Window"
        seconds={draft.windowSeconds}
        onInput={(windowSeconds) => onChange({ windowSeconds })}
        hint={window === undefined || points === null ? window : `${window}, about ${points} points of this source`}
        fault={faultAt(error, "evaluation.windowSeconds")}
      />
      <DurationField
        label="Clears after"
        seconds={draft.dwellSeconds}
        onInput={(dwellSeconds) => onChange({ dwellSeconds })}
        hint={draft.dwellSeconds.trim() === "" ? "If empty, the length of the window" : undefined}
        fault={faultAt(error, "evaluation.dwellSeconds")}
      />
    </div>
  );
}
