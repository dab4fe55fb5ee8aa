/**
 * What somebody types into a form, kept over the end of a session and over a reload, until it is saved or given up. In
 * this tab's storage only, under the user's id: whoever logs in next sees none of it. Never for secrets.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { guardLeaving } from "./route";
import { session } from "./session";

const PREFIX = "tidewatch.draft.";

export interface Draft<T> {
  value: T;
  change: (part: Partial<T>) => void;
  /** Typed before the form was opened anew. */
  restored: boolean;
  /** Saved or given up: nothing is kept, nothing is asked on leaving. */
  done: () => void;
  /** Back to what the form began with. */
  reset: () => void;
}

export function useDraft<T extends object>(name: string, start: T): Draft<T> {
  const key = `${PREFIX}${session.get()?.user._id ?? ""}.${name}`;
  const [value, setValue] = useState<T>(() => ({ ...start, ...read<T>(key) }));
  const [restored, setRestored] = useState(() => sessionStorage.getItem(key) !== null);
  const release = useRef(() => {});
  const dirty = JSON.stringify(value) !== JSON.stringify(start);
  const done = () => {
    sessionStorage.removeItem(key);
    release.current();
  };
  // Before the next key can be pressed: an effect behind the picture would come too late for a quick Escape.
  useLayoutEffect(() => {
    if (!dirty) {
      sessionStorage.removeItem(key);
      return;
    }
    const unguard = guardLeaving(() => sessionStorage.removeItem(key));
    release.current = unguard;
    return unguard;
  }, [dirty, key]);
  return {
    value,
    restored: restored && dirty,
    change: (part) =>
      setValue((before) => {
        const next = { ...before, ...part };
        sessionStorage.setItem(key, JSON.stringify(next));
        return next;
      }),
    done,
    reset: () => {
      done();
      setRestored(false);
      setValue(start);
    },
  };
}

/** Whether something unsaved is kept under this name. */
export const hasDraft = (name: string): boolean =>
  sessionStorage.getItem(`${PREFIX}${session.get()?.user._id ?? ""}.${name}`) !== null;

function read<T>(key: string): Partial<T> {
  const text = sessionStorage.getItem(key);
  // Only this module writes there; a form of an older version lacks members, which `start` has.
  return text === null ? {} : (JSON.parse(text) as Partial<T>);
}
