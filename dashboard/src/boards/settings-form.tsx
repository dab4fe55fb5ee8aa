/** A board's name, range, time zone, refresh and variables. */
import { useId, useState } from "preact/hooks";
import type { BoardContent, Variable } from "../api/boards";
import { isNamedZone } from "../app/clock";
import { useZone } from "../app/preferences";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { DurationField } from "../parts/duration";
import { TextField } from "../parts/forms";
import { spokenRange } from "./controls";
import { lengthSeconds } from "./state";

type Part = Omit<BoardContent, "panels">;

interface SettingsProps {
  board: BoardContent;
  onDone: (part: Part) => void;
  onClose: () => void;
}

interface VariableText {
  name: string;
  default: string;
  /** One a line or between commas. */
  values: string;
}

const textOf = (variable: Variable): VariableText => ({
  name: variable.name,
  default: variable.default ?? "",
  values: variable.values?.join(", ") ?? "",
});

function variableOf({ name, default: otherwise, values }: VariableText): Variable {
  const choices = values.split(",").map((value) => value.trim()).filter((value) => value !== "");
  return {
    name: name.trim(),
    default: otherwise.trim() === "" ? null : otherwise.trim(),
    values: choices.length === 0 ? null : choices,
  };
}

const NAME = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;

export function SettingsForm({ board, onDone, onClose }: SettingsProps) {
  const fixed = typeof board.range !== "string";
  const zones = useId();
  const ownZone = useZone();
  const [name, setName] = useState(board.name);
  const [length, setLength] = useState(typeof board.range === "string" ? board.range : "");
  const [timezone, setTimezone] = useState(board.timezone ?? "");
  const [refresh, setRefresh] = useState(board.refreshSeconds?.toString() ?? "");
  const [variables, setVariables] = useState<VariableText[]>(board.variables.map(textOf));
  const seconds = refresh.trim() === "" ? null : Number(refresh);
  const refreshFault =
    seconds === null || (Number.isInteger(seconds) && seconds >= 5 && seconds <= 86_400)
      ? null
      : "must be from 5s to 1d, in whole seconds, or empty for never";
  const keeps = length.trim() === "" && fixed;
  const lengthFault = keeps || lengthSeconds(length.trim()) !== null ? null : "must be a length such as 24h or 7d";
  const names = variables.map((variable) => variable.name.trim());
  const nameFault = (index: number) => {
    if (!NAME.test(names[index]!)) return "must start with a letter and go on with letters, digits and underscores";
    return names.indexOf(names[index]!) < index ? "must be unique" : null;
  };
  const zone = timezone.trim();
  // One that the server knows and this browser does not may stay.
  const zoneFault =
    zone === "" || zone === board.timezone || isNamedZone(zone)
      ? null
      : "must be the name of a time zone such as Europe/Stockholm, or empty";
  const faults = [zoneFault, refreshFault, lengthFault, ...names.map((_, index) => nameFault(index))];
  const valid = faults.every((fault) => fault === null);
  return (
    <Dialog title="Settings of the board" onClose={onClose} wide>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!valid) return;
          onDone({
            name: name.trim(),
            range: keeps ? board.range : length.trim(),
            timezone: zone === "" ? null : zone,
            refreshSeconds: seconds,
            variables: variables.map(variableOf),
          });
        }}
      >
        <TextField label="Name" value={name} onInput={setName} required maxLength={100} />
        <TextField
          label="Range"
          value={length}
          onInput={setLength}
          mono
          hint={
            fixed
              ? `If empty, ${spokenRange(board.range, board.timezone ?? ownZone)}`
              : "The last so much time, such as 6h, 24h or 7d"
          }
          fault={lengthFault}
        />
        <DurationField
          label="Refresh every"
          seconds={refresh}
          onInput={setRefresh}
          hint={refresh.trim() === "" ? "Such as 30s or 5m; empty for never" : undefined}
          fault={refreshFault}
        />
        <TextField
          label="Time zone"
          value={timezone}
          onInput={setTimezone}
          hint="Such as Europe/Stockholm; empty for that of the reader"
          fault={zoneFault}
          list={zones}
        />
        <datalist id={zones}>
          {Intl.supportedValuesOf("timeZone").map((known) => (
            <option key={known} value={known} />
          ))}
        </datalist>
        <fieldset class="choice-list">
          <legend>Variables</legend>
          {variables.map((variable, index) => {
            const change = (part: Partial<VariableText>) =>
              setVariables(variables.map((one, at) => (at === index ? { ...one, ...part } : one)));
            return (
              <div class="field-row" key={index}>
                <TextField
                  label="Name"
                  value={variable.name}
                  onInput={(text) => change({ name: text })}
                  required
                  fault={variable.name === "" ? null : nameFault(index)}
                />
                <TextField label="Default" value={variable.default} onInput={(text) => change({ default: text })} />
                <TextField
                  label="Choices"
                  value={variable.values}
                  onInput={(text) => change({ values: text })}
                  hint="Commas between them"
                />
                <Button
                  small
                  icon="trash"
                  label={`Remove the variable ${variable.name}`}
                  onClick={() => setVariables(variables.filter((_, at) => at !== index))}
                />
              </div>
            );
          })}
          {variables.length < 20 && (
            <Button
              small
              icon="plus"
              onClick={() => setVariables([...variables, { name: "", default: "", values: "" }])}
            >
              Add a variable
            </Button>
          )}
        </fieldset>
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={!valid}>
            Done
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
