/** A length of time, typed with its unit and held in seconds. */
import { useState } from "preact/hooks";
import { durationOf, shortDuration } from "../app/duration";
import { formatSpan } from "../app/format";
import { TextField, type TextProps } from "./forms";

type DurationProps = Omit<TextProps, "type" | "inputMode" | "value" | "onInput"> & {
  /** Seconds as a text; what is no length as it was typed. */
  seconds: string;
  onInput: (seconds: string) => void;
};

/** What is no length is said at once; what it comes to, under the field. */
export function DurationField({ seconds, onInput, hint, fault, ...rest }: DurationProps) {
  const [typed, setTyped] = useState(() => writtenOf(seconds));
  // A value from elsewhere, such as a draft that was kept, is shown in place of what was typed.
  const shown = secondsOf(typed) === seconds ? typed : writtenOf(seconds);
  const length = durationOf(shown);
  const odd = shown.trim() !== "" && length === null;
  return (
    <TextField
      {...rest}
      value={shown}
      onInput={(text) => {
        setTyped(text);
        onInput(secondsOf(text));
      }}
      hint={hint ?? (length === null ? undefined : formatSpan(length))}
      fault={odd ? `must be a length such as 90s, 5m or 2h, not ${shown.trim()}` : fault}
    />
  );
}

function secondsOf(typed: string): string {
  const length = durationOf(typed);
  return length === null ? typed : String(length);
}

function writtenOf(seconds: string): string {
  const length = durationOf(seconds);
  return length === null ? seconds : shortDuration(length);
}
