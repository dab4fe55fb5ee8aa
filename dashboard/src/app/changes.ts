/**
 * Keeps every open page at what the server knows: one small request asks what kinds of things have changed, and what
 * is loaded of a kind that has is loaded again (`useLoad`). Only while the tab is seen.
 */
import { readChanges, type Versions } from "../api/changes";
import { onMutation } from "../api/client";
import { within } from "./deadline";
import { createStore } from "./store";

const PERIOD_MS = 10_000;
const ANSWER_WITHIN_MS = 15_000;

/** Null until the first answer. */
export const versions = createStore<Versions | null>(null);
/** Since when the page may show what is no longer so; null while it is up to date. */
export const staleSince = createStore<number | null>(null);

let etag: string | null = null;
let upToDateAt = Date.now();
let asking: AbortController | null = null;
/** Something may have changed behind the request that is under way. */
let askAgain = false;

async function ask(): Promise<void> {
  if (asking !== null) {
    askAgain = true;
    return;
  }
  const abort = new AbortController();
  asking = abort;
  const askedAt = Date.now();
  try {
    const answer = await within(ANSWER_WITHIN_MS, abort.signal, (signal) => readChanges(etag, signal));
    if (asking !== abort) return;
    if (answer !== null) {
      etag = answer.etag;
      versions.set(answer.body);
    }
    upToDateAt = askedAt;
    staleSince.set(null);
  } catch {
    if (asking !== abort) return;
    staleSince.set(upToDateAt);
  } finally {
    if (asking === abort) asking = null;
  }
  if (askAgain) {
    askAgain = false;
    void ask();
  }
}

const askWhileSeen = () => {
  if (!document.hidden) void ask();
};

/** To be called when somebody is logged in; the function it gives back ends it. */
export function followChanges(): () => void {
  upToDateAt = Date.now();
  const timer = setInterval(askWhileSeen, PERIOD_MS);
  document.addEventListener("visibilitychange", askWhileSeen);
  window.addEventListener("online", askWhileSeen);
  // What this page has changed itself shows in counts and lists at once.
  onMutation(askWhileSeen);
  askWhileSeen();
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", askWhileSeen);
    window.removeEventListener("online", askWhileSeen);
    onMutation(() => undefined);
    const given = asking;
    asking = null;
    askAgain = false;
    given?.abort();
    etag = null;
    versions.set(null);
    staleSince.set(null);
  };
}
