/** Values of a dimension to pick from: those that series have, found by how they begin; others can be typed. */
import { useRef, useState } from "preact/hooks";
import { listValues, type SourcePath } from "../api/dimensions";
import { plural } from "../app/format";
import { useLoad } from "../app/load";
import { Button } from "../parts/button";
import { CheckField, TextField } from "../parts/forms";
import { shownValue } from "./dimension-words";

/** More values than this are found by typing. */
const LISTED_MAX = 12;
/** Sources whose values are listed. */
const SOURCES_MAX = 8;

interface ValuePickerProps {
  name: string;
  /** Those that have the dimension. */
  sources: SourcePath[];
  picked: string[];
  /** Other texts that can stand for a value: variables of a board. */
  others?: string[];
  fault: string | null;
  onChange: (picked: string[]) => void;
}

export function ValuePicker({ name, sources, picked, others = [], fault, onChange }: ValuePickerProps) {
  const [typed, setTyped] = useState("");
  const asked = sources.slice(0, SOURCES_MAX);
  const key = asked.length === 0 ? null : JSON.stringify(["pick", name, typed, ...asked.map(({ sourceId }) => sourceId)]);
  const loaded = useLoad(key, async (signal) => {
    const pages = await Promise.all(asked.map((source) => listValues(source, name, typed, LISTED_MAX, 0, signal)));
    const values = [...new Set(pages.flatMap((page) => page.values.map(({ value }) => value)))].sort();
    const more = Math.max(...pages.map(({ pagination }) => pagination.total)) > LISTED_MAX;
    return { values: values.slice(0, LISTED_MAX), more: more || values.length > LISTED_MAX };
  });
  // What was found before stays until the answer is here.
  const last = useRef(loaded.data);
  if (loaded.data !== null) last.current = loaded.data;
  const offered = last.current?.values ?? [];
  const listed = [...new Set([...picked, ...others, ...offered])];
  const isNew = typed !== "" && !listed.includes(typed);
  /** Enter takes what is meant, and does not send the form. */
  const take = () => {
    const found = loaded.data?.values ?? [];
    const value = found.length === 1 ? found[0]! : typed;
    if (!picked.includes(value)) onChange([...picked, value]);
    setTyped("");
  };
  return (
    <div
      class="value-picker"
      onKeyDown={(event) => {
        if (event.key !== "Enter" || typed === "" || !(event.target instanceof HTMLInputElement)) return;
        event.preventDefault();
        take();
      }}
    >
      <TextField
        label={`Find a value of ${name}`}
        value={typed}
        onInput={setTyped}
        type="search"
        placeholder="begins with"
        fault={fault}
      />
      <div class="value-list" role="group" aria-label={`Values of ${name}`}>
        {listed.map((value) => (
          <CheckField
            key={value}
            label={<span class="mono">{shownValue(value)}</span>}
            checked={picked.includes(value)}
            onChange={(on) => onChange(on ? [...picked, value] : picked.filter((one) => one !== value))}
          />
        ))}
      </div>
      {isNew && (
        <Button small icon="plus" onClick={() => onChange([...picked, typed])}>
          Take “{typed}”
        </Button>
      )}
      <p class="hint" role="status">
        {loaded.error !== null
          ? "The values could not be listed; type one."
          : loaded.data?.more
            ? `The first ${LISTED_MAX}; type how another begins.`
            : loaded.data !== null && offered.length === 0 && typed !== ""
              ? `No value begins with “${typed}” now.`
              : picked.length > 0
                ? `${plural(picked.length, "value")} picked.`
                : ""}
      </p>
    </div>
  );
}
