/** The view of a state, loaded, kept for a while, and moved on while it is live. */
import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort } from "../api/client";
import { asError } from "../app/load";
import { extentOf, knownFields, type Catalog } from "./catalog";
import { fetchTail, fetchView, type View } from "./fetch";
import { livePeriodMs } from "./live";
import { callsOf, planOf } from "./plan";
import { spanOf } from "./range";
import { writeState, type ExplorerState } from "./state";

/** A view is shown again without a call for so long: going back from a zoom costs nothing. */
const KEPT_MS = 60_000;
const KEPT_VIEWS = 24;
const SLOW_AFTER_MS = 300;

const kept = new Map<string, { view: View; at: number }>();

export interface LoadedView {
  view: View | null;
  error: Error | null;
  /** Asking for longer than a blink. */
  slow: boolean;
  /** Live, and between two rounds. */
  following: boolean;
  reload: () => void;
}

export function useView(
  state: ExplorerState,
  catalog: Catalog | null,
  widthPx: number,
  callsLimit: number | null,
): LoadedView {
  const [view, setView] = useState<View | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [slow, setSlow] = useState(false);
  const [round, setRound] = useState(0);
  const current = useRef<View | null>(null);
  current.current = view;

  // Widths within 200 px are planned alike, so that a scrollbar does not ask again.
  const width = Math.max(200, Math.round(widthPx / 200) * 200);
  const key = `${writeState({ ...state, live: false })} ${width}`;
  const ready = catalog !== null && widthPx > 0;

  useEffect(() => {
    if (!ready || catalog === null) return;
    const fields = knownFields(catalog, state.fields);
    if (fields.length === 0) {
      setView(null);
      return;
    }
    const held = kept.get(key);
    if (held !== undefined && round === 0 && Date.now() - held.at < KEPT_MS && state.range.kind === "absolute") {
      setView(held.view);
      setError(null);
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => setSlow(true), SLOW_AFTER_MS);
    const span = spanOf(state.range, Date.now(), extentOf(catalog, fields));
    const asked = { ...state, fields };
    const plan = planOf(asked, catalog.byId, span, width, Date.now());
    const regroup = () => {
      // Points came as raw rows and were more than an answer holds: an hour's groups are a safe second try.
      if (state.groupBy === "raw") return null;
      const coarser = planOf({ ...asked, aggregation: "avg", groupBy: "hour" }, catalog.byId, span, width, Date.now());
      return coarser.kind === "raw" ? null : coarser;
    };
    fetchView(plan, span, regroup, abort.signal).then(
      (answer) => {
        keep(key, answer);
        setView(answer);
        setError(null);
        clearTimeout(timer);
        setSlow(false);
      },
      (caught: unknown) => {
        if (abort.signal.aborted || isAbort(caught)) return;
        setError(asError(caught));
        clearTimeout(timer);
        setSlow(false);
      },
    );
    return () => {
      clearTimeout(timer);
      setSlow(false);
      abort.abort();
    };
  }, [key, ready, catalog, round]);

  const following = state.live && view !== null && catalog !== null;
  const period = following ? livePeriodMs(callsLimit, callsOf(view.plan)) : null;
  useEffect(() => {
    if (period === null || catalog === null) return;
    const abort = new AbortController();
    let asking = false;
    const timer = setInterval(() => {
      const before = current.current;
      // A hidden tab costs nothing; a slow answer is waited for, not overtaken.
      if (asking || document.hidden || before === null) return;
      asking = true;
      const now = Date.now();
      const extent =
        state.range.kind === "last" && state.range.preset === "all" ? { from: before.span.from, to: now } : null;
      fetchTail(before, extent ?? spanOf(state.range, now, null), abort.signal)
        .then(
          (next) => {
            if (current.current !== before) return;
            setView(next);
            setError(null);
          },
          (caught: unknown) => {
            if (!isAbort(caught)) setError(asError(caught));
          },
        )
        .finally(() => {
          asking = false;
        });
    }, period);
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, [period, key, catalog]);

  return { view, error, slow, following, reload: () => setRound((n) => n + 1) };
}

function keep(key: string, view: View): void {
  kept.delete(key);
  kept.set(key, { view, at: Date.now() });
  const [oldest] = kept.keys();
  if (kept.size > KEPT_VIEWS && oldest !== undefined) kept.delete(oldest);
}
