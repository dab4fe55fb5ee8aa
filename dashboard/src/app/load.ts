/**
 * Loading in a component: superseded requests are cancelled, slowness shows only when it lasts, what has changed on the
 * server is loaded again, and so is what failed.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Kind } from "../api/changes";
import { ApiError, isAbort } from "../api/client";
import { versions } from "./changes";
import { within } from "./deadline";
import { useStore } from "./store";

/** Below this, a skeleton would be a flicker. */
export const SLOW_AFTER_MS = 300;
/** Soon enough for who waits in front of the page. */
const RETRY_MS = 5000;
/** The server gives up after 30 s itself. */
const ANSWER_WITHIN_MS = 35_000;
/** Timers hold 31 bits of milliseconds. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;
const NO_KINDS: readonly Kind[] = [];

export interface Loaded<T> {
  data: T | null;
  error: Error | null;
  /** Loading for longer than a blink, and nothing to show yet. */
  slow: boolean;
  loading: boolean;
  /** Asks again, behind a request that is under way; what is shown stays until the answer is here. */
  reload: () => void;
  /** Asks again unless a request is under way, so that a slow server is not asked faster than it answers. */
  refresh: () => void;
}

/** Whether the same request may go better in a moment: no answer, a busy server, a script that did not come. */
export function mayGoBetter(error: Error): boolean {
  return !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500;
}

/** Reads what `key` names, again whenever something of these kinds has changed; a null key reads nothing. */
export function useLoad<T>(
  key: string | null,
  read: (signal: AbortSignal) => Promise<T>,
  kinds: readonly Kind[] = NO_KINDS,
): Loaded<T> {
  const [held, setHeld] = useState<{ key: string | null; data: T | null; error: Error | null }>({
    key: null,
    data: null,
    error: null,
  });
  const [round, setRound] = useState(0);
  const [loading, setLoading] = useState(false);
  const [slow, setSlow] = useState(false);
  const latest = useRef(read);
  latest.current = read;

  /** Whether a request is under way, and whether something has changed behind it. */
  const under = useRef({ way: false, again: false });

  useEffect(() => {
    if (key === null) {
      under.current = { way: false, again: false };
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => setSlow(true), SLOW_AFTER_MS);
    under.current = { way: true, again: false };
    setLoading(true);
    const done = () => {
      clearTimeout(timer);
      setSlow(false);
      setLoading(false);
      const { again } = under.current;
      under.current = { way: false, again: false };
      if (again) refresh();
    };
    within(ANSWER_WITHIN_MS, abort.signal, (signal) => latest.current(signal)).then(
      (data) => {
        if (abort.signal.aborted) return;
        setHeld({ key, data, error: null });
        done();
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        // What is gone must not stay on the page.
        const gone = error instanceof ApiError && error.status === 404;
        setHeld((before) => ({ key, data: before.key === key && !gone ? before.data : null, error: asError(error) }));
        done();
      },
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
      under.current = { way: false, again: false };
      setSlow(false);
    };
  }, [key, round]);

  const refresh = useCallback(() => {
    if (under.current.way) return;
    // From now on, not from when the effect runs: two timers may ring at one moment.
    under.current.way = true;
    setRound((n) => n + 1);
  }, []);
  const reload = useCallback(() => {
    if (under.current.way) under.current.again = true;
    else refresh();
  }, []);
  const current = held.key === key;
  useInterval(current && held.error !== null && mayGoBetter(held.error) ? RETRY_MS : null, refresh);
  const known = useStore(versions);
  const version = known === null || kinds.length === 0 ? null : kinds.map((kind) => known[kind]).join(" ");
  const seen = useRef(version);
  useEffect(() => {
    if (version === null) return;
    if (seen.current !== null && seen.current !== version) reload();
    seen.current = version;
  }, [version]);
  return {
    data: current ? held.data : null,
    error: current ? held.error : null,
    slow: slow && (!current || held.data === null),
    loading,
    reload,
    refresh,
  };
}

/** An action with an outcome: running or not, and the error of the last try. */
export function useAction<A extends unknown[]>(act: (...args: A) => Promise<void>) {
  const [running, setRunning] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
    };
  }, []);
  const run = async (...args: A) => {
    if (running) return;
    setRunning(true);
    setError(null);
    try {
      await act(...args);
    } catch (caught) {
      if (alive.current && !isAbort(caught)) setError(asError(caught));
    } finally {
      if (alive.current) setRunning(false);
    }
  };
  return { run, running, error, clear: () => setError(null) };
}

/** Calls `tick` each `periodMs` while the tab is seen; null stops it. */
export function useInterval(periodMs: number | null, tick: () => void): void {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    if (periodMs === null) return;
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, periodMs);
    return () => clearInterval(timer);
  }, [periodMs]);
}

/** Calls `then` once when the moment is there; null waits for nothing. */
export function useMoment(at: number | null, then: () => void): void {
  const latest = useRef(then);
  latest.current = then;
  useEffect(() => {
    if (at === null) return;
    // What is past was read after it: only a clock that runs ahead of the server's finds it so again and again.
    const left = at - Date.now();
    if (left <= 0) return;
    const timer = setTimeout(() => latest.current(), Math.min(left, LONGEST_WAIT_MS));
    return () => clearTimeout(timer);
  }, [at]);
}

/** The time, ticking. */
export function useNow(periodMs: number): number {
  const [now, setNow] = useState(Date.now());
  useInterval(periodMs, () => setNow(Date.now()));
  return now;
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
