/** Which series a view takes, and by which dimensions it has lines. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Source } from "../api/sources";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { focusFault } from "../parts/forms";
import { ConditionFields, GroupFields, isValidChoice, topOf, useNamed, type ChoiceText } from "./dimension-fields";
import type { DimensionChoice } from "./dimensions";

export interface DimensionFormProps {
  choice: DimensionChoice;
  /** Of the picked fields. */
  sources: Source[];
  onDone: (choice: DimensionChoice) => void;
  onClose: () => void;
}

export function DimensionForm({ choice, sources, onDone, onClose }: DimensionFormProps) {
  const named = useNamed(sources);
  const [value, setValue] = useState<ChoiceText>({ ...choice, top: String(choice.top) });
  const form = useRef<HTMLFormElement>(null);
  /** How often it was tried to apply what is typed; faults are shown from the first time on. */
  const [rounds, setRounds] = useState(0);
  useEffect(() => focusFault(form.current), [rounds]);
  const submit = () => {
    setRounds(rounds + 1);
    if (isValidChoice(value)) onDone({ ...value, top: topOf(value.top) ?? choice.top });
  };
  // Opened when there is something to put the focus on.
  if (named === null) return null;
  const fields = { named, value, tried: rounds > 0 };
  const change = (part: Partial<ChoiceText>) => setValue((before) => ({ ...before, ...part }));
  return (
    <Dialog title="Dimensions" onClose={onClose} wide>
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        {named.length === 0 && (
          <p class="hint">
            The picked sources have no dimensions: a source has them from its points' metadata, and only if it says so
            before its first point.
          </p>
        )}
        <GroupFields {...fields} onChange={change} />
        <ConditionFields {...fields} onChange={change} />
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
