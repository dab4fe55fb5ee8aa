/** One range and one choice of variables for the whole board. */
import type { BoardContent, BoardRange } from "../api/boards";
import { isKnownZone } from "../app/clock";
import { formatSpan, formatTime } from "../app/format";
import type { Zone } from "../app/preferences";
import { SelectField, TextField } from "../parts/forms";
import { VariableField } from "./variable-field";
import type { VariableDimension } from "./variables";
import { LENGTHS, lengthSeconds, valueOf, type BoardState } from "./state";

interface ControlsProps {
  board: BoardContent;
  state: BoardState;
  onChange: (state: BoardState) => void;
  /** The name of a source, where a variable stands for one. */
  sourceName: (id: string) => string | null;
  zone: Zone;
  /** The dimension that a variable stands for a value of. */
  dimensionOf?: (variable: string) => VariableDimension | null;
  /** Without those that a link does not take. */
  shared?: boolean;
}

const OWN = "";
const FIXED = "fixed";

export function Controls({ board, state, onChange, sourceName, zone, dimensionOf, shared }: ControlsProps) {
  const lengths = [
    { value: OWN, label: `${spokenRange(board.range, zone)} (default)` },
    ...LENGTHS.map((length) => ({ value: length, label: spokenRange(length, zone) })),
  ];
  const fixed = state.range !== null && typeof state.range !== "string";
  if (fixed) lengths.push({ value: FIXED, label: spokenRange(state.range!, zone) });
  return (
    <div class="board-controls" role="group" aria-label="Range and variables">
      <SelectField
        label="Range"
        value={state.range === null ? OWN : fixed ? FIXED : (state.range as string)}
        options={lengths}
        onChange={(value) => {
          if (value !== FIXED) onChange({ ...state, range: value === OWN ? null : value });
        }}
      />
      {!shared &&
        board.variables.map((variable) => {
          const choose = (value: string) =>
            onChange({ ...state, values: new Map([...state.values, [variable.name, value]]) });
          const value = valueOf(variable, state) ?? "";
          const dimension = variable.values === null ? (dimensionOf?.(variable.name) ?? null) : null;
          if (dimension !== null) {
            const { name } = variable;
            return <VariableField key={name} label={name} value={value} dimension={dimension} onInput={choose} />;
          }
          if (variable.values === null)
            return <TextField key={variable.name} label={variable.name} value={value} onInput={choose} />;
          const choices = variable.values.includes(value) ? variable.values : [value, ...variable.values];
          const options = choices.map((choice) => ({ value: choice, label: sourceName(choice) ?? choice }));
          return (
            <SelectField key={variable.name} label={variable.name} value={value} options={options} onChange={choose} />
          );
        })}
      {board.timezone !== null && <p class="hint">{spokenZone(board.timezone)}</p>}
    </div>
  );
}

const spokenZone = (name: string): string =>
  isKnownZone(name)
    ? `Times of ${name}`
    : `Times in UTC: this browser does not know ${name}`;

export function spokenRange(range: BoardRange, zone: Zone): string {
  const seconds = typeof range === "string" ? lengthSeconds(range) : null;
  if (typeof range === "string") return `the last ${seconds === null ? range : formatSpan(seconds)}`;
  return `${formatTime(Date.parse(range.startTime), zone)} to ${formatTime(Date.parse(range.endTime), zone)}`;
}
