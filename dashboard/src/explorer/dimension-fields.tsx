/** Which series are taken, and by what they are grouped, as fields of a form. */
import { useLoad } from "../app/load";
import { listDimensions, type SourcePath } from "../api/dimensions";
import type { Source } from "../api/sources";
import { Button } from "../parts/button";
import { CheckField, NumberField, SelectField, TextField } from "../parts/forms";
import {
  CONDITIONS_MAX,
  DIMENSION_OPERATORS,
  GROUPS_MAX,
  TOP_MAX,
  isComplete,
  operandOf,
  type DimensionCondition,
  type DimensionOperator,
} from "./dimensions";
import { ValuePicker } from "./value-picker";

export const OPERATOR_WORDS: Record<DimensionOperator, string> = {
  is: "is, or is one of",
  not: "is not",
  absent: "is absent",
  present: "is present",
  matches: "matches",
  notMatches: "does not match",
};

/** What stands in the fields: `top` as it is typed. */
export interface ChoiceText {
  conditions: DimensionCondition[];
  groups: string[];
  top: string;
  least: boolean;
}

/** Names of dimensions that some of the sources have, each with those that have it. */
export type Named = { name: string; sources: SourcePath[] }[];

/** Sources whose names are asked for at once. */
const SOURCES_MAX = 24;

/** Null while they are loaded. */
export function useNamed(sources: Source[]): Named | null {
  const asked = sources.filter(({ dimensions }) => dimensions !== null).slice(0, SOURCES_MAX);
  const key = asked.length === 0 ? null : `named ${asked.map(({ _id }) => _id).join()}`;
  const loaded = useLoad(key, async (signal) => {
    const lists = await Promise.all(
      asked.map(async ({ bucketId, _id, dimensions }) => {
        const source = { bucketId, sourceId: _id };
        const names =
          dimensions === "all" ? (await listDimensions(source, signal)).map(({ name }) => name) : (dimensions ?? []);
        return { source, names };
      }),
    );
    const named = new Map<string, SourcePath[]>();
    for (const { source, names } of lists) for (const name of names) named.set(name, [...(named.get(name) ?? []), source]);
    return [...named].map(([name, having]) => ({ name, sources: having })).sort((a, b) => (a.name < b.name ? -1 : 1));
  });
  return key === null || loaded.error !== null ? [] : loaded.data;
}

export const topOf = (text: string): number | null => {
  const top = Number(text);
  return text.trim() !== "" && Number.isInteger(top) && top >= 1 && top <= TOP_MAX ? top : null;
};

export function faultOfCondition(condition: DimensionCondition, all: DimensionCondition[]): string | null {
  if (all.some((one) => one !== condition && one.name === condition.name)) return "must be the only one on its dimension";
  if (isComplete(condition)) return null;
  return operandOf(condition.operator) === "pattern" ? "must not be empty" : "must have a value";
}

/** Whether all that stands in the fields can be asked; `optional`: all groups may be lines. */
export const isValidChoice = ({ conditions, groups, top }: ChoiceText, optional = false): boolean =>
  conditions.every((one) => faultOfCondition(one, conditions) === null) &&
  (groups.length === 0 || isTop(top, optional));

const isTop = (text: string, optional: boolean): boolean => (optional && text.trim() === "") || topOf(text) !== null;

interface Props {
  named: Named;
  value: ChoiceText;
  /** Faults are shown. */
  tried: boolean;
  /** Variables that can stand for a value. */
  variables?: string[];
  onChange: (part: Partial<ChoiceText>) => void;
}

export function ConditionFields({ named, value: { conditions }, tried, variables, onChange }: Props) {
  const free = named.find(({ name }) => !conditions.some((one) => one.name === name));
  return (
    <fieldset class="choice-list">
      <legend>Only series whose dimension</legend>
      {conditions.map((condition, index) => {
        const change = (part: Partial<DimensionCondition>) =>
          onChange({ conditions: conditions.map((one, at) => (at === index ? { ...one, ...part } : one)) });
        const { name, operator, values } = condition;
        const fault = tried ? faultOfCondition(condition, conditions) : null;
        const operand = operandOf(operator);
        return (
          <div class="dimension-row" role="group" aria-label={`Condition ${index + 1}`} key={index}>
            <div class="field-row">
              <SelectField
                label="Dimension"
                value={name}
                options={[...new Set([...named.map((one) => one.name), name])]}
                onChange={(other) => change({ name: other, values: operand === "values" ? [] : values })}
                fault={operand === "nothing" ? fault : null}
              />
              <SelectField
                label="Condition"
                value={operator}
                options={DIMENSION_OPERATORS.map((one) => ({ value: one, label: OPERATOR_WORDS[one] }))}
                onChange={(other) => {
                  const next = other as DimensionOperator;
                  change({ operator: next, values: operandOf(next) === operand ? values : [] });
                }}
              />
              {operand === "pattern" && (
                <TextField
                  label="Regular expression"
                  class="wide"
                  mono
                  value={values[0] ?? ""}
                  onInput={(text) => change({ values: [text] })}
                  maxLength={1000}
                  placeholder="web-.*"
                  hint="Of the whole value"
                  fault={fault}
                />
              )}
              <Button
                small
                icon="trash"
                label={`Remove the condition on ${name}`}
                onClick={() => onChange({ conditions: conditions.filter((_, at) => at !== index) })}
              />
            </div>
            {operand === "values" && (
              <ValuePicker
                key={name}
                name={name}
                sources={named.find((one) => one.name === name)?.sources ?? []}
                picked={values}
                others={variables}
                fault={fault}
                onChange={(picked) => change({ values: picked })}
              />
            )}
          </div>
        );
      })}
      {conditions.length < CONDITIONS_MAX && free !== undefined && (
        <Button
          small
          icon="plus"
          onClick={() => onChange({ conditions: [...conditions, { name: free.name, operator: "is", values: [] }] })}
        >
          Add a condition on a dimension
        </Button>
      )}
    </fieldset>
  );
}

interface NameFieldsProps {
  legend: string;
  /** What it means that none is chosen, and that some are. */
  none: string;
  some: string;
  named: Named;
  groups: string[];
  onChange: (groups: string[]) => void;
}

/** The dimensions that are grouped by. */
export function NameFields({ legend, none, some, named, groups, onChange }: NameFieldsProps) {
  const names = [...new Set([...named.map(({ name }) => name), ...groups])];
  const full = groups.length >= GROUPS_MAX;
  return (
    <fieldset class="choice-list">
      <legend>{legend}</legend>
      <div class="name-list">
        {names.map((name) => (
          <CheckField
            key={name}
            label={<span class="mono">{name}</span>}
            checked={groups.includes(name)}
            disabled={full && !groups.includes(name)}
            onChange={(on) => onChange(on ? [...groups, name] : groups.filter((one) => one !== name))}
          />
        ))}
      </div>
      <p class="hint">
        {full ? `${GROUPS_MAX} dimensions are as many as can be grouped by.` : groups.length > 0 ? some : none}
      </p>
    </fieldset>
  );
}

/** `optional`: all groups may be lines. */
export function GroupFields({ named, value, tried, optional = false, onChange }: Props & { optional?: boolean }) {
  const { groups, top, least } = value;
  return (
    <>
      <NameFields
        legend="A line for each value of"
        none="None: all series of a source are one line."
        some="Several: each combination of their values is a line."
        named={named}
        groups={groups}
        onChange={(chosen) => onChange({ groups: chosen })}
      />
      {groups.length > 0 && (
        <div class="field-row">
          <SelectField
            label="Of each source, those with the"
            value={least ? "least" : "greatest"}
            options={["greatest", "least"].map((word) => ({ value: word, label: `${word} values` }))}
            onChange={(word) => onChange({ least: word === "least" })}
          />
          <NumberField
            label="Lines at most"
            value={top}
            onInput={(text) => onChange({ top: text })}
            hint={optional ? `1 to ${TOP_MAX}; all when empty` : `1 to ${TOP_MAX}`}
            fault={tried && !isTop(top, optional) ? `must be an integer from 1 to ${TOP_MAX}` : null}
          />
        </div>
      )}
    </>
  );
}
