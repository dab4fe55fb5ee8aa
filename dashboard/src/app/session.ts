/**
 * Who is logged in, and why a session ended. What proves it is a cookie that no script can read; the page keeps no more
 * than when that ends, so that it need not ask where nobody has logged in.
 */
import { logOut, renewSession, whoAmI, type SignedIn, type User } from "../api/accounts";
import { ApiError, isAbort, onRefused } from "../api/client";
import { createStore } from "./store";

export interface Session {
  expiresAt: string;
  user: User;
}

const STORED_AS = "tidewatch.session-ends";
/** When the cookie was given, as far as this browser knows. */
const BEGAN_AS = "tidewatch.session-began";
/** Where the token itself was kept before it moved to the cookie. */
const FORMERLY_STORED_AS = "tidewatch.session";

/** What the login page says when it was not asked for. */
export const sessionNotice = createStore<string | null>(null);
/** `undefined` until the server has said who it is. */
export const session = createStore<Session | null | undefined>(null);

/**
 * A session that is used goes on: the server renews the cookie with any answer in the second half of its life. What is older
 * than this is renewed here, as long as a page is open, so that the page knows when the cookie ends.
 */
const RENEWED_AFTER_MS = 3_600_000;
const RENEWAL_CHECK_MS = 60_000;

export function beginSession({ expiresAt, user }: SignedIn): void {
  localStorage.setItem(BEGAN_AS, String(Date.now()));
  localStorage.setItem(STORED_AS, expiresAt);
  sessionNotice.set(null);
  session.set({ expiresAt, user });
}

/** `notice` says why, unless the user asked for it. */
export function endSession(notice: string | null): void {
  localStorage.removeItem(STORED_AS);
  localStorage.removeItem(BEGAN_AS);
  sessionNotice.set(notice);
  session.set(null);
}

/** Ends the session on the server, which also clears the cookie, as no script can. */
export async function leave(): Promise<void> {
  await logOut();
  endSession(null);
}

/** To be called once, when the page is loaded. */
export async function resumeSession(): Promise<void> {
  localStorage.removeItem(FORMERLY_STORED_AS);
  const expiresAt = localStorage.getItem(STORED_AS);
  if (expiresAt === null || !(Date.parse(expiresAt) > Date.now())) {
    localStorage.removeItem(STORED_AS);
    session.set(null);
    return;
  }
  // A page that is open stays as it is while the server is asked: somebody may type in it.
  if (session.get() === null) session.set(undefined);
  try {
    const { user } = await whoAmI();
    session.set({ expiresAt, user });
  } catch (error) {
    // A refusal has ended the session already, with its reason.
    if (session.get() !== undefined || isAbort(error)) return;
    sessionNotice.set(
      error instanceof Error ? `Could not check who is logged in: ${error.message}.` : null,
    );
    session.set(null);
  }
}

/** Replaces a session that is old enough. Another tab may just have done so: both have the same cookie. */
async function renewWhenOld(): Promise<void> {
  const current = session.get();
  if (current === null || current === undefined) return;
  const began = Number(localStorage.getItem(BEGAN_AS) ?? NaN);
  if (Number.isNaN(began)) localStorage.setItem(BEGAN_AS, String(Date.now()));
  if (!(Date.now() - began > RENEWED_AFTER_MS)) return;
  try {
    beginSession(await renewSession());
  } catch (error) {
    // A refusal has ended the session, with its reason; what else went wrong is tried again in a minute.
    if (!(error instanceof ApiError)) throw error;
  }
}

setInterval(() => void renewWhenOld(), RENEWAL_CHECK_MS);

onRefused(() => endSession("Your session has ended. Log in again to continue."));

// Another tab that logs in or out does so for this one too: both have the same cookie.
window.addEventListener("storage", (event) => {
  if (event.key === STORED_AS) void resumeSession();
});
