/** A variable that stands for a value of a dimension: typed, with the values that there are as suggestions. */
import { useId } from "preact/hooks";
import { listValues } from "../api/dimensions";
import { useLoad } from "../app/load";
import { TextField } from "../parts/forms";
import type { VariableDimension } from "./variables";

const SUGGESTED_MAX = 50;
/** Sources whose values are suggested. */
const SOURCES_MAX = 8;

interface VariableFieldProps {
  label: string;
  value: string;
  dimension: VariableDimension;
  onInput: (value: string) => void;
}

export function VariableField({ label, value, dimension: { name, sources }, onInput }: VariableFieldProps) {
  const id = useId();
  const asked = sources.slice(0, SOURCES_MAX);
  const key = JSON.stringify(["suggest", name, value, ...asked.map(({ sourceId }) => sourceId)]);
  const loaded = useLoad(key, async (signal) => {
    const of = (prefix: string) =>
      Promise.all(asked.map((source) => listValues(source, name, prefix, SUGGESTED_MAX, 0, signal)));
    // A whole value is to be exchanged for another.
    const found = await of(value);
    const values = new Set(found.flatMap((page) => page.values.map((one) => one.value)));
    if (value === "" || !values.has(value)) return [...values];
    return [...new Set((await of("")).flatMap((page) => page.values.map((one) => one.value)))];
  });
  return (
    <>
      <TextField label={label} value={value} onInput={onInput} list={id} />
      <datalist id={id}>
        {(loaded.data ?? []).map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </>
  );
}
