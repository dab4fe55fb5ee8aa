/** Labelled inputs that show the server's fault at the field it is about. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { ApiError } from "../api/client";
import { numberOf, sentence } from "../app/format";

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  fault?: string | null;
  class?: string;
  /** The label is for screen readers only, where a table's head says the same. */
  labelHidden?: boolean;
}

export interface TextProps extends FieldProps {
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "email" | "password" | "url" | "search" | "number" | "datetime-local";
  required?: boolean;
  autocomplete?: string;
  placeholder?: string;
  minLength?: number;
  maxLength?: number;
  min?: number;
  max?: number;
  step?: number | "any";
  disabled?: boolean;
  spellcheck?: boolean;
  mono?: boolean;
  inputMode?: "decimal";
  /** Id of a `datalist` with suggestions. */
  list?: string;
  /** A control of the same line. */
  beside?: ComponentChildren;
}

/**
 * A number as text: a browser's own number field drops what it does not take, and 5,5 would become 55 unseen. What is
 * no number is said at once.
 */
export function NumberField(props: Omit<TextProps, "type" | "inputMode">) {
  const odd = props.value.trim() !== "" && numberOf(props.value) === null;
  const fault = odd ? `must be a number such as 5.5, not ${props.value.trim()}` : props.fault;
  return <TextField {...props} inputMode="decimal" fault={fault} />;
}

export function TextField(props: TextProps) {
  const id = useId();
  const { label, hint, fault, value, onInput, labelHidden, mono, type, class: extra, beside, ...rest } = props;
  const input = (
    <input
      {...rest}
      id={id}
      class={mono ? "input mono" : "input"}
      // Preact types an input by each of its types; these share all attributes that are set here.
      type={(type ?? "text") as "text"}
      value={value}
      spellcheck={props.spellcheck ?? false}
      aria-invalid={fault ? "true" : undefined}
      aria-describedby={describedBy(id, hint, fault)}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
  return (
    <FieldFrame id={id} label={label} hint={hint} fault={fault} class={extra} labelHidden={labelHidden}>
      {beside === undefined ? (
        input
      ) : (
        <div class="input-line">
          {input}
          {beside}
        </div>
      )}
    </FieldFrame>
  );
}

interface TextAreaProps extends FieldProps {
  value: string;
  onInput: (value: string) => void;
  rows: number;
  maxLength: number;
  required?: boolean;
  disabled?: boolean;
}

/** A text of several lines, in a fixed pitch. */
export function TextAreaField(props: TextAreaProps) {
  const id = useId();
  const { label, hint, fault, value, onInput, labelHidden, class: extra, ...rest } = props;
  return (
    <FieldFrame id={id} label={label} hint={hint} fault={fault} class={extra} labelHidden={labelHidden}>
      <textarea
        {...rest}
        id={id}
        class="input mono"
        value={value}
        spellcheck={false}
        aria-invalid={fault ? "true" : undefined}
        aria-describedby={describedBy(id, hint, fault)}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </FieldFrame>
  );
}

interface SelectProps extends FieldProps {
  value: string;
  onChange: (value: string) => void;
  options: readonly (string | { value: string; label: string })[];
  disabled?: boolean;
}

export function SelectField(props: SelectProps) {
  const id = useId();
  const { label, hint, fault, value, onChange, options, disabled, labelHidden, class: extra } = props;
  return (
    <FieldFrame id={id} label={label} hint={hint} fault={fault} class={extra} labelHidden={labelHidden}>
      <select
        id={id}
        class="input"
        value={value}
        disabled={disabled}
        aria-invalid={fault ? "true" : undefined}
        aria-describedby={describedBy(id, hint, fault)}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {options.map((option) => {
          const given = typeof option === "string" ? { value: option, label: option } : option;
          return (
            <option key={given.value} value={given.value} selected={given.value === value}>
              {given.label}
            </option>
          );
        })}
      </select>
    </FieldFrame>
  );
}

interface CheckProps {
  label: ComponentChildren;
  hint?: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
}

export function CheckField({ label, hint, checked, onChange, disabled }: CheckProps) {
  const id = useId();
  return (
    <div class="check">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint && (
          <p class="hint" id={`${id}-hint`}>
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}

function FieldFrame(props: FieldProps & { id: string; children: ComponentChildren }) {
  const { id, label, hint, fault, children, labelHidden } = props;
  return (
    <div class={props.class ? `field ${props.class}` : "field"}>
      <label for={id} class={labelHidden ? "visually-hidden" : undefined}>
        {label}
      </label>
      {children}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {fault && (
        <p class="fault" id={`${id}-fault`}>
          {sentence(fault)}
        </p>
      )}
    </div>
  );
}

function describedBy(id: string, hint: unknown, fault: unknown): string | undefined {
  const ids = [hint ? `${id}-hint` : "", fault ? `${id}-fault` : ""].filter((part) => part !== "");
  return ids.length > 0 ? ids.join(" ") : undefined;
}

/** What the server says about the member at `path`, dots between its parts. */
export function faultAt(error: Error | null, path: string): string | null {
  if (!(error instanceof ApiError)) return null;
  const found = error.faults.filter((fault) => fault.path.join(".") === path);
  return found.length > 0 ? found.map((fault) => fault.message).join("; ") : null;
}

/** To the first field of a form that says that it is wrong. */
export function focusFault(form: HTMLFormElement | null | undefined): void {
  const wrong = form?.querySelector("[aria-invalid]");
  if (wrong instanceof HTMLElement) wrong.focus();
}

/** An error in the API's words; faults that stand at their own fields (`shownAt`) are not said twice. */
export function ErrorBox({ error, shownAt }: { error: Error | null; shownAt?: (path: string) => boolean }) {
  const box = useRef<HTMLDivElement>(null);
  // The first field that is wrong is where to go on.
  useEffect(() => {
    focusFault(box.current?.closest("form"));
  }, [error]);
  if (error === null) return null;
  const faults = error instanceof ApiError ? error.faults : [];
  const rest = faults.filter((fault) => !shownAt?.(fault.path.join(".")));
  const allAtFields = faults.length > 0 && rest.length === 0;
  const requestId = error instanceof ApiError && error.status >= 500 ? error.requestId : null;
  return (
    <div class="error-box" role="alert" ref={box}>
      <p>
        {allAtFields ? "Not saved: correct the marked fields above." : sentence(error.message)}
        {requestId !== null && <span class="mono"> Request {requestId}.</span>}
      </p>
      {rest.length > 0 && faults.length > 1 && (
        <ul>
          {rest.map((fault) => (
            <li>
              {fault.path.length > 0 && <code>{fault.path.join(".")}</code>} {fault.message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
