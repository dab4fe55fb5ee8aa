/** Tries a draft out while it is typed: one try at a time, the one before is given up. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isAbort } from "../api/client";
import { within } from "../app/deadline";
import { asError } from "../app/load";
import type { KnownSource, RuleDraft } from "../pages/rule-draft";
import { faultsOf } from "../pages/rule-faults";
import type { Trial } from "./trial";

/** Nobody is asked before the typing has paused for so long. */
const PAUSE_MS = 700;
const ANSWER_MS_MAX = 30_000;

export type TrialState =
  | { kind: "faulty" }
  | { kind: "running"; before: Trial | null }
  | { kind: "failed"; error: Error }
  | { kind: "answered"; trial: Trial };

type Run = (draft: RuleDraft, sources: KnownSource[], now: number, signal: AbortSignal) => Promise<Trial>;

/** `run` carries a try out. */
export function useTrial(draft: RuleDraft, sources: KnownSource[], run: Run): { state: TrialState; again: () => void } {
  const [held, setHeld] = useState<{ key: string; result: Trial | Error } | null>(null);
  const [round, setRound] = useState(0);
  const latest = useRef({ draft, sources });
  latest.current = { draft, sources };
  const key = useMemo(() => keyOf(draft, sources), [draft, sources]);
  useEffect(() => {
    if (key === null) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const asked = latest.current;
      within(ANSWER_MS_MAX, abort.signal, (signal) => run(asked.draft, asked.sources, Date.now(), signal)).then(
        (result) => {
          if (!abort.signal.aborted) setHeld({ key, result });
        },
        (caught: unknown) => {
          if (!abort.signal.aborted && !isAbort(caught)) setHeld({ key, result: asError(caught) });
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, round]);
  const again = () => {
    setHeld(null);
    setRound((n) => n + 1);
  };
  return { state: stateOf(key, held), again };
}

function stateOf(key: string | null, held: { key: string; result: Trial | Error } | null): TrialState {
  if (key === null) return { kind: "faulty" };
  if (held === null) return { kind: "running", before: null };
  const { result } = held;
  if (held.key !== key) return { kind: "running", before: result instanceof Error ? null : result };
  return result instanceof Error ? { kind: "failed", error: result } : { kind: "answered", trial: result };
}

/** What a try depends on; null of a draft with faults. It needs no name. */
export function keyOf(draft: RuleDraft, sources: KnownSource[]): string | null {
  if (draft.kind !== null && faultsOf({ ...draft, name: "draft" }, sources).length > 0) return null;
  const { bucketId, sourceId, kind, condition, inputs, intervalSeconds, windowSeconds, dwellSeconds } = draft;
  return JSON.stringify([bucketId, sourceId, kind, condition, inputs, intervalSeconds, windowSeconds, dwellSeconds]);
}
