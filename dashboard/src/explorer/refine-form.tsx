/** Which points a view takes, what it computes of them, and whether sources are drawn together. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { FieldType } from "../api/sources";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { CheckField, SelectField, TextField, focusFault } from "../parts/forms";
import type { Catalog } from "./catalog";
import {
  CONDITIONS_MAX,
  EXPRESSIONS_MAX,
  OPERATORS,
  metadataValueOf,
  operandsOf,
  valueOf,
  writtenMetadata,
  type Condition,
  type Expression,
  type Operator,
  type Refinement,
} from "./refinement";
import { FIELDS_MAX, sameField, type FieldRef } from "./state";

export interface RefineFormProps {
  refinement: Refinement;
  fields: FieldRef[];
  /** Without computed fields. */
  catalog: Catalog;
  onDone: (refinement: Refinement, fields: FieldRef[]) => void;
  onClose: () => void;
}

interface ConditionText {
  field: string;
  operator: Operator;
  value: string;
}

interface MetadataText {
  name: string;
  value: string;
}

const SIGNS: Record<Operator, string> = { gt: ">", gte: "≥", lt: "<", lte: "≤", eq: "=", neq: "≠" };

export function RefineForm({ refinement, fields, catalog, onDone, onClose }: RefineFormProps) {
  const types = typesOf(fields, catalog);
  const names = [...types.keys()];
  const [conditions, setConditions] = useState<ConditionText[]>(
    refinement.conditions.map(({ value, ...rest }) => ({ ...rest, value: String(value) })),
  );
  const [metadata, setMetadata] = useState<MetadataText[]>(
    refinement.metadata.map(({ name, value }) => ({ name, value: writtenMetadata(value) })),
  );
  const [expressions, setExpressions] = useState<Expression[]>(refinement.expressions);
  const [merged, setMerged] = useState(refinement.merged);
  const form = useRef<HTMLFormElement>(null);
  /** How often it was tried to apply what is typed; faults are shown from the first time on. */
  const [rounds, setRounds] = useState(0);
  const tried = rounds > 0;

  const conditionFault = ({ field, operator, value }: ConditionText) => faultOfValue(value, types.get(field), operator);
  const nameFault = (index: number) => {
    const name = expressions[index]!.name.trim();
    if (name === "") return "must not be empty";
    if (types.has(name)) return "must not be the name of a field";
    return expressions.findIndex((one) => one.name.trim() === name) < index ? "must be unique" : null;
  };
  const expressionFault = ({ expression }: Expression) => {
    if (expression.trim() === "") return "must not be empty";
    const unknown = operandsOf(expression).filter((operand) => types.get(operand) !== "number");
    if (unknown.length === 0) return null;
    return `must use number fields of the picked sources; ${unknown[0]} is none`;
  };
  const isWrong =
    conditions.some((one) => conditionFault(one) !== null) ||
    metadata.some(({ name, value }) => name.trim() === "" || metadataValueOf(value) === null) ||
    expressions.some((one, index) => nameFault(index) !== null || expressionFault(one) !== null);

  useEffect(() => focusFault(form.current), [rounds]);
  const submit = () => {
    setRounds(rounds + 1);
    if (isWrong) return;
    const next: Refinement = {
      conditions: conditions.map(({ field, operator, value }): Condition => {
        return { field, operator, value: valueOf(value, types.get(field)!)! };
      }),
      metadata: metadata.map(({ name, value }) => ({ name: name.trim(), value: metadataValueOf(value)! })),
      expressions: expressions.map(({ name, expression }) => ({ name: name.trim(), expression: expression.trim() })),
      merged,
    };
    onDone(next, fieldsWith(next.expressions, refinement.expressions, fields, catalog));
  };
  return (
    <Dialog title="Filter and compute" onClose={onClose} wide>
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <fieldset class="choice-list">
          <legend>Only points whose values are</legend>
          {conditions.map((condition, index) => {
            const change = (part: Partial<ConditionText>) =>
              setConditions(conditions.map((one, at) => (at === index ? { ...one, ...part } : one)));
            const type = types.get(condition.field) ?? "number";
            const operators = type === "number" ? OPERATORS : OPERATORS.filter((one) => one === "eq" || one === "neq");
            return (
              <div class="field-row" key={index}>
                <SelectField
                  label="Field"
                  value={condition.field}
                  options={[...new Set([...names, condition.field])]}
                  onChange={(field) =>
                    change({ field, operator: "eq", value: types.get(field) === "boolean" ? "true" : "" })
                  }
                />
                <SelectField
                  label="Condition"
                  value={condition.operator}
                  options={operators.map((value) => ({ value, label: SIGNS[value] }))}
                  onChange={(operator) => change({ operator: operator as Operator })}
                />
                {type === "boolean" ? (
                  <SelectField
                    label="Value"
                    value={condition.value}
                    options={["true", "false"]}
                    onChange={(value) => change({ value })}
                  />
                ) : (
                  <TextField
                    label="Value"
                    value={condition.value}
                    onInput={(value) => change({ value })}
                    fault={tried ? conditionFault(condition) : null}
                  />
                )}
                <Button
                  small
                  icon="trash"
                  label={`Remove the condition on ${condition.field}`}
                  onClick={() => setConditions(conditions.filter((_, at) => at !== index))}
                />
              </div>
            );
          })}
          {conditions.length < CONDITIONS_MAX && names.length > 0 && (
            <Button
              small
              icon="plus"
              onClick={() =>
                setConditions([
                  ...conditions,
                  { field: names[0]!, operator: "eq", value: types.get(names[0]!) === "boolean" ? "true" : "" },
                ])
              }
            >
              Add a condition on a value
            </Button>
          )}
        </fieldset>
        <fieldset class="choice-list">
          <legend>Only points whose metadata are</legend>
          {metadata.map((member, index) => {
            const change = (part: Partial<MetadataText>) =>
              setMetadata(metadata.map((one, at) => (at === index ? { ...one, ...part } : one)));
            return (
              <div class="field-row" key={index}>
                <TextField
                  label="Member"
                  value={member.name}
                  onInput={(name) => change({ name })}
                  hint="A dot between the parts of a nested one"
                  fault={tried && member.name.trim() === "" ? "must not be empty" : null}
                />
                <TextField
                  label="Is"
                  value={member.value}
                  onInput={(value) => change({ value })}
                  hint='A number in quotes is a text: "5"'
                  fault={tried && metadataValueOf(member.value) === null ? "must not be empty" : null}
                />
                <Button
                  small
                  icon="trash"
                  label={`Remove the condition on ${member.name}`}
                  onClick={() => setMetadata(metadata.filter((_, at) => at !== index))}
                />
              </div>
            );
          })}
          {metadata.length < CONDITIONS_MAX && (
            <Button small icon="plus" onClick={() => setMetadata([...metadata, { name: "", value: "" }])}>
              Add a condition on metadata
            </Button>
          )}
        </fieldset>
        <fieldset class="choice-list">
          <legend>Computed lines</legend>
          {expressions.map((expression, index) => {
            const change = (part: Partial<Expression>) =>
              setExpressions(expressions.map((one, at) => (at === index ? { ...one, ...part } : one)));
            return (
              <div class="field-row" key={index}>
                <TextField
                  label="Name"
                  value={expression.name}
                  onInput={(name) => change({ name })}
                  maxLength={128}
                  fault={tried ? nameFault(index) : null}
                />
                <TextField
                  class="wide"
                  label="Expression"
                  value={expression.expression}
                  onInput={(text) => change({ expression: text })}
                  mono
                  maxLength={1000}
                  placeholder="power / (voltage * current)"
                  fault={tried ? expressionFault(expression) : null}
                />
                <Button
                  small
                  icon="trash"
                  label={`Remove the line ${expression.name}`}
                  onClick={() => setExpressions(expressions.filter((_, at) => at !== index))}
                />
              </div>
            );
          })}
          {expressions.length < EXPRESSIONS_MAX && (
            <Button small icon="plus" onClick={() => setExpressions([...expressions, { name: "", expression: "" }])}>
              Add a computed line
            </Button>
          )}
          <p class="hint">
            Fields of one source, numbers, + − * / and parentheses, min, max, abs, round; a name with other characters
            in backquotes. Of groups, it is computed of the groups’ values.
          </p>
        </fieldset>
        <CheckField
          label="Draw sources together"
          hint="One line for each field of a bucket, over all its picked sources."
          checked={merged}
          onChange={setMerged}
        />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Apply
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The fields of the picked sources, picked or not. */
function typesOf(fields: FieldRef[], catalog: Catalog): Map<string, FieldType> {
  const types = new Map<string, FieldType>();
  for (const { sourceId } of fields)
    for (const [name, { type }] of Object.entries(catalog.byId.get(sourceId)?.schema ?? {})) types.set(name, type);
  return types;
}

function faultOfValue(text: string, type: FieldType | undefined, operator: Operator): string | null {
  if (type === undefined) return "is not a field of the picked sources";
  if (type !== "number" && operator !== "eq" && operator !== "neq") return `a ${type} is = or ≠ something`;
  if (valueOf(text, type) !== null) return null;
  return type === "number" ? `must be a number such as 5.5, not ${text.trim() || "empty"}` : "must not be empty";
}

/** The picked fields without computed ones that are gone, with new ones of each picked source that has the operands. */
function fieldsWith(now: Expression[], before: Expression[], fields: FieldRef[], catalog: Catalog): FieldRef[] {
  const isGone = ({ field }: FieldRef) =>
    before.some(({ name }) => name === field) && !now.some(({ name }) => name === field);
  const kept = fields.filter((ref) => !isGone(ref));
  const sources = [...new Map(kept.map((ref) => [ref.sourceId, ref])).values()];
  const added = now
    .filter(({ name }) => !before.some((one) => one.name === name))
    .flatMap(({ name, expression }) =>
      sources
        .filter(({ sourceId }) => {
          const schema = catalog.byId.get(sourceId)?.schema ?? {};
          return operandsOf(expression).every((operand) => schema[operand] !== undefined);
        })
        .map(({ bucketId, sourceId }) => ({ bucketId, sourceId, field: name })),
    )
    .filter((ref) => !kept.some((one) => sameField(one, ref)));
  return [...kept, ...added].slice(0, FIELDS_MAX);
}
