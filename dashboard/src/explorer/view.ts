/** The view of a state, loaded, kept for a while, and moved on while it is live. */
import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort } from "../api/client";
import { within } from "../app/deadline";
import { asError, SLOW_AFTER_MS } from "../app/load";
import { timezoneOf, type Zone } from "../app/preferences";
import { extentOf, knownFields, type Catalog } from "./catalog";
import type { DimensionNames } from "./dimensions";
import { fetchView, followView, type View } from "./fetch";
import { planOf } from "./plan";
import { spanOf } from "./range";
import { writeState, type ExplorerState } from "./state";

/** A view is shown again without a call for so long: going back from a zoom costs nothing. */
const KEPT_MS = 60_000;
const KEPT_VIEWS = 24;
const ANSWER_MS_MAX = 30_000;
/** Between two rounds of a live view; a slow server is given twice the time that it took. */
const LIVE_MS = 1_000;
const LIVE_RETRY_MS = 5_000;
/** Widths within so many pixels are asked for alike, so that a scrollbar does not ask again. */
const WIDTH_STEP_PX = 100;

const NO_NAMES: DimensionNames = new Map();

const kept = new Map<string, { view: View; at: number }>();

export interface LoadedView {
  view: View | null;
  error: Error | null;
  /** The view of the present state is not here yet; `view` is the one before. */
  loading: boolean;
  /** Loading for longer than a blink. */
  slow: boolean;
  /** Live, and the last round came back. */
  following: boolean;
  /** Why a live view does not move; it goes on trying. */
  liveError: Error | null;
  reload: () => void;
}

export const plotWidth = (widthPx: number): number =>
  Math.max(WIDTH_STEP_PX, Math.round(widthPx / WIDTH_STEP_PX) * WIDTH_STEP_PX);

/** `names`: null while they are not known. */
export function useView(
  state: ExplorerState,
  catalog: Catalog,
  widthPx: number,
  zone: Zone,
  names: DimensionNames | null = NO_NAMES,
): LoadedView {
  // What was asked for before stays until the answer is here; `key` says what it is the answer to.
  const [held, setHeld] = useState<{ key: string; view: View } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [slow, setSlow] = useState(false);
  const [round, setRound] = useState(0);
  const width = plotWidth(widthPx);
  const key = `${writeState({ ...state, live: false })} ${width} ${zone}`;
  const ready = widthPx > 0 && names !== null;

  useEffect(() => {
    if (!ready || names === null) return;
    const fields = knownFields(catalog, state.fields);
    if (fields.length === 0) {
      setHeld(null);
      return;
    }
    const before = kept.get(key);
    if (before !== undefined && round === 0 && Date.now() - before.at < KEPT_MS && state.range.kind === "absolute") {
      setHeld({ key, view: before.view });
      setError(null);
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => setSlow(true), SLOW_AFTER_MS);
    const done = (failed: Error | null) => {
      clearTimeout(timer);
      setSlow(false);
      setError(failed);
    };
    const span = spanOf(state.range, Date.now(), extentOf(catalog, fields), zone);
    const plan = planOf({ ...state, fields }, catalog.byId, span, width, Date.now(), timezoneOf(zone), names);
    within(ANSWER_MS_MAX, abort.signal, (signal) => fetchView(plan, span, signal)).then(
      (answer) => {
        if (abort.signal.aborted) return;
        keep(key, answer);
        setHeld({ key, view: answer });
        done(null);
      },
      (caught: unknown) => {
        if (!abort.signal.aborted && !isAbort(caught)) done(asError(caught));
      },
    );
    return () => {
      clearTimeout(timer);
      setSlow(false);
      abort.abort();
    };
  }, [key, ready, names, catalog, round]);

  const answered = held?.key === key ? held.view : null;
  const live = useLive(state, answered, key, zone, (view) => setHeld({ key, view }));
  const loading = answered === null && error === null;
  return { view: held?.view ?? null, error, loading, slow, ...live, reload: () => setRound((n) => n + 1) };
}

/** Moves the view on, round after round. */
function useLive(
  state: ExplorerState,
  view: View | null,
  key: string,
  zone: Zone,
  setView: (view: View) => void,
): Pick<LoadedView, "following" | "liveError"> {
  const [liveError, setLiveError] = useState<Error | null>(null);
  const current = useRef(view);
  current.current = view;
  const moveOn = useRef(setView);
  moveOn.current = setView;
  const on = state.live && view !== null;

  useEffect(() => {
    if (!on) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const again = (afterMs: number) => {
      timer = setTimeout(() => void follow(), afterMs);
    };
    const follow = async () => {
      const before = current.current;
      // A hidden tab costs nothing.
      if (document.hidden || before === null) return again(LIVE_MS);
      const [began, now] = [performance.now(), Date.now()];
      const all = state.range.kind === "last" && state.range.preset === "all";
      const span = all ? { from: before.span.from, to: now } : spanOf(state.range, now, null, zone);
      try {
        const next = await within(ANSWER_MS_MAX, abort.signal, (signal) => followView(before, span, signal));
        if (abort.signal.aborted) return;
        if (current.current === before) moveOn.current(next);
        setLiveError(null);
        again(Math.max(LIVE_MS, 2 * (performance.now() - began)));
      } catch (caught) {
        if (abort.signal.aborted) return;
        setLiveError(asError(caught));
        again(LIVE_RETRY_MS);
      }
    };
    again(LIVE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
      setLiveError(null);
    };
  }, [on, key]);

  return { following: on && liveError === null, liveError };
}

function keep(key: string, view: View): void {
  kept.delete(key);
  kept.set(key, { view, at: Date.now() });
  const [oldest] = kept.keys();
  if (kept.size > KEPT_VIEWS && oldest !== undefined) kept.delete(oldest);
}
