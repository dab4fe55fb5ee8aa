/** Modal dialogs on `<dialog>`: the browser holds the focus inside, and gives it back when they close. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useAction } from "../app/load";
import { Button } from "./button";
import { ErrorBox, TextField } from "./forms";
import { SecretOnce } from "./show";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}

export function Dialog({ title, onClose, children, wide }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    if (dialog !== null) firstOf(dialog)?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onKeyDown={(event) => {
        // Browsers let a second Escape close a dialog whatever the page says to it.
        if (event.key !== "Escape" || event.isComposing) return;
        event.preventDefault();
        event.stopPropagation();
        onClose();
      }}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button icon="close" look="quiet" label="Close" onClick={onClose} />
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

/** What is typed at once goes into the first field; without one the first button is the harmless one. */
function firstOf(dialog: HTMLElement): HTMLElement | null {
  const body = dialog.querySelector(".dialog-body");
  return (
    body?.querySelector<HTMLElement>("input:enabled, select:enabled, textarea:enabled") ??
    body?.querySelector("button") ??
    null
  );
}

interface OnceProps {
  title: string;
  /** What it is: `key`, `secret`. */
  what: string;
  value: string;
  children?: ComponentChildren;
  onClose: () => void;
}

/** A dialog with a value that is shown this once: it does not close by a slip. */
export function ShownOnce({ title, what, value, children, onClose }: OnceProps) {
  const [copied, setCopied] = useState(false);
  const [asked, setAsked] = useState(false);
  return (
    <Dialog title={title} onClose={() => (copied || asked ? onClose() : setAsked(true))}>
      <SecretOnce what={what} value={value} onCopied={() => setCopied(true)} />
      {children}
      {asked && (
        <p class="error-box" role="alert">
          <span>
            The {what} has not been copied, and closing loses it for good. Escape or Close once more closes it anyway.
          </span>
        </p>
      )}
      <div class="actions end">
        <Button look="primary" onClick={onClose}>
          I have copied it
        </Button>
      </div>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  /** What the button says: the verb, not "OK". */
  action: string;
  /** The name to type before the button works, for what cannot be undone. */
  typed?: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

export function Confirm({ title, children, action, typed, onConfirm, onClose }: ConfirmProps) {
  const [text, setText] = useState("");
  const { run, running, error } = useAction(onConfirm);
  const ready = typed === undefined || text.trim() === typed;
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) void run();
        }}
      >
        {children}
        {typed !== undefined && (
          <TextField
            label="Type its name to confirm"
            hint={
              <>
                The name is <strong class="name">{typed}</strong>
              </>
            }
            value={text}
            onInput={setText}
            autocomplete="off"
          />
        )}
        <ErrorBox error={error} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="danger" disabled={!ready} busy={running}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
