/** When a rule fires: the parameters of its kind, each as what it is. */
import type { ComponentChildren } from "preact";
import { CheckField, NumberField, SelectField, TextField, faultAt } from "../parts/forms";
import { Button } from "../parts/button";
import { DurationField } from "../parts/duration";
import type { RuleFieldsProps } from "./input-fields";
import { emptyInput, sourceOf, typeOf, type InputDraft, type ParameterDraft } from "./rule-draft";
import { unitOfRows } from "./rule-groups";
import { KINDS, MATCHES, OPERATORS, operatorsOf, originsOf, type Condition, type Kind } from "./rule-kinds";

export function KindChoice({ draft, onChange }: Pick<RuleFieldsProps, "draft" | "onChange">) {
  return (
    <div class="field">
      <span class="label">Kind</span>
      <div class="segments wrap" role="group" aria-label="Kind">
        {(Object.keys(KINDS) as Kind[]).map((kind) => (
          <button
            type="button"
            key={kind}
            aria-pressed={draft.kind === kind}
            onClick={() => onChange(kind === "absence" ? { kind, inputs: draft.inputs.map(ofPoints) } : { kind })}
          >
            {KINDS[kind].label}
          </button>
        ))}
        <button type="button" aria-pressed={draft.kind === null} onClick={() => onChange({ kind: null })}>
          Own evaluator
        </button>
      </div>
      <p class="hint">
        {draft.kind === null
          ? "Your own evaluator decides, from your text and parameters"
          : KINDS[draft.kind].hint}
      </p>
    </div>
  );
}

/** Silence is told by points: groups come late. */
const ofPoints = (input: InputDraft): InputDraft => ({ ...input, grouping: "" });

export function ConditionFields(props: RuleFieldsProps) {
  const { draft, sources, onChange } = props;
  const { condition, kind } = draft;
  const first = draft.inputs[0] ?? emptyInput();
  const type = typeOf(draft, first, sources);
  const unit = unitOfRows(first.grouping, sourceOf(draft, first, sources)?.schema[first.field]?.unit);
  const change = (part: Partial<Condition>) => onChange({ condition: { ...condition, ...part } });
  const fault = (name: string) => faultAt(props.error, `evaluation.parameters.${name}`);
  const number = (
    name: keyof Condition,
    label: string,
    more: { unit?: string | undefined; hint?: string | undefined } = {},
  ) => (
    <NumberField
      label={more.unit ? `${label} (${more.unit})` : label}
      value={String(condition[name])}
      onInput={(text) => change({ [name]: text })}
      fault={fault(name)}
      hint={more.hint}
    />
  );
  switch (kind) {
    case null:
      return <OwnEvaluator {...props} />;
    case "threshold":
      return (
        <Grid>
          <SelectField
            label="Operator"
            value={condition.operator}
            onChange={(operator) => change({ operator })}
            options={[
              ...(!operatorsOf(type).includes(condition.operator)
                ? [{ value: condition.operator, label: "choose one" }]
                : []),
              ...operatorsOf(type).map((name) => ({
                value: name,
                label: `${OPERATORS[name]!.sign} ${OPERATORS[name]!.words}`,
              })),
            ]}
            fault={fault("operator")}
          />
          {type === "boolean" ? (
            <SelectField
              label="Value"
              value={condition.value}
              onChange={(value) => change({ value })}
              options={[{ value: "", label: "choose" }, "true", "false"]}
              fault={fault("value")}
            />
          ) : type === "string" ? (
            <TextField
              label="Value"
              value={condition.value}
              onInput={(value) => change({ value })}
              fault={fault("value")}
            />
          ) : (
            number("value", "Value", { unit })
          )}
          <Match condition={condition} change={change} fault={fault("minCount")} />
        </Grid>
      );
    case "range":
      return (
        <Grid>
          {number("low", "Low end", { unit })}
          {number("high", "High end", { unit })}
          <SelectField
            label="It fires"
            value={condition.inside ? "inside" : "outside"}
            onChange={(value) => change({ inside: value === "inside" })}
            options={["outside", "inside"]}
          />
          <Match condition={condition} change={change} fault={fault("minCount")} />
        </Grid>
      );
    case "change":
      return (
        <Grid>
          <SelectField
            label="Direction"
            value={condition.direction}
            onChange={(direction) =>
              change({ direction, from: originsOf(direction).includes(condition.from) ? condition.from : "first" })
            }
            options={[
              { value: "increase", label: "increases" },
              { value: "decrease", label: "decreases" },
              { value: "any", label: "either" },
            ]}
            fault={fault("direction")}
          />
          {number("by", "By at least", { unit: condition.percent ? "%" : unit })}
          <SelectField
            label="Compared with"
            value={condition.from}
            onChange={(from) => change({ from })}
            options={originsOf(condition.direction).map((from) => ({
              value: from,
              label: { first: "first value", min: "least value", max: "greatest value" }[from] ?? from,
            }))}
            fault={fault("from")}
          />
          <CheckField label="In percent" checked={condition.percent} onChange={(percent) => change({ percent })} />
        </Grid>
      );
    case "absence":
      return (
        <Grid>
          <DurationField
            label="Silent for"
            seconds={condition.maxGapSeconds}
            onInput={(maxGapSeconds) => change({ maxGapSeconds })}
            hint={condition.maxGapSeconds.trim() === "" ? "If empty, the whole window" : undefined}
            fault={fault("maxGapSeconds")}
          />
        </Grid>
      );
    case "zscore":
      return (
        <Grid>
          {number("limit", "Standard deviations")}
          {number("minPoints", "Values to compare with", { hint: "With fewer values, the verdict is inconclusive" })}
        </Grid>
      );
  }
}

const Grid = ({ children }: { children: ComponentChildren }) => <div class="form-grid">{children}</div>;

interface MatchProps {
  condition: Condition;
  change: (part: Partial<Condition>) => void;
  fault: string | null;
}

function Match({ condition, change, fault }: MatchProps) {
  const labels: Record<string, string> = {
    any: "one row is enough",
    all: "every row must",
    last: "the newest row must",
    count: "so many rows must",
  };
  return (
    <>
      <SelectField
        label="Rows of the window"
        value={condition.match}
        onChange={(match) => change({ match })}
        options={MATCHES.map((match) => ({ value: match, label: labels[match] ?? match }))}
      />
      {condition.match === "count" && (
        <NumberField
          label="How many"
          value={condition.minCount}
          onInput={(minCount) => change({ minCount })}
          fault={fault}
        />
      )}
    </>
  );
}

/** Words and parameters that this page cannot compare: an evaluator of one's own gives them their meaning. */
function OwnEvaluator({ draft, error, onChange }: RuleFieldsProps) {
  const change = (index: number, part: Partial<ParameterDraft>) =>
    onChange({
      parameters: draft.parameters.map((parameter, at) => (at === index ? { ...parameter, ...part } : parameter)),
    });
  return (
    <>
      <TextField
        label="Name of the kind"
        value={draft.ownKind}
        maxLength={64}
        mono
        onInput={(ownKind) => onChange({ ownKind })}
        hint="Your evaluator selects its rules by this name. The reference evaluator reports such rules as inconclusive"
        fault={faultAt(error, "evaluation.kind")}
      />
      <TextField
        label="Condition, in words"
        value={draft.text}
        onInput={(text) => onChange({ text })}
        maxLength={1000}
        fault={faultAt(error, "naturalLanguageQuery")}
      />
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
            <ParameterValue
              parameter={parameter}
              label={`Value of parameter ${index + 1}`}
              onInput={(value) => change(index, { value })}
              fault={faultAt(error, `evaluation.parameters.${parameter.name.trim()}`)}
            />
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
    </>
  );
}

interface ParameterValueProps {
  parameter: ParameterDraft;
  label: string;
  onInput: (value: string) => void;
  fault: string | null;
}

function ParameterValue({ parameter: { type, value }, label, onInput, fault }: ParameterValueProps) {
  const common = { label, labelHidden: true, placeholder: "value", fault };
  if (type === "number") return <NumberField {...common} value={value} onInput={onInput} />;
  if (type === "string") return <TextField {...common} value={value} onInput={onInput} />;
  return (
    <SelectField
      label={label}
      labelHidden
      value={value === "true" ? "true" : "false"}
      onChange={onInput}
      options={["true", "false"]}
    />
  );
}
