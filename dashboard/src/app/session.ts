/**
 * Who is logged in, and why a session ended. What proves it is a cookie that no script can read; the page keeps no more
 * than when that ends, so that it need not ask where nobody has logged in.
 */
import { logOut, whoAmI, type SignedIn, type User } from "../api/accounts";
import { isAbort, onRefused } from "../api/client";
import { createStore } from "./store";

export interface Session {
  expiresAt: string;
  user: User;
}

const STORED_AS = "tidewatch.session-ends";
/** Where the token itself was kept before it moved to the cookie. */
const FORMERLY_STORED_AS = "tidewatch.session";

/** What the login page says when it was not asked for. */
export const sessionNotice = createStore<string | null>(null);
/** `undefined` until the server has said who it is. */
export const session = createStore<Session | null | undefined>(null);

export function beginSession({ expiresAt, user }: SignedIn): void {
  localStorage.setItem(STORED_AS, expiresAt);
  sessionNotice.set(null);
  session.set({ expiresAt, user });
}

/** `notice` says why, unless the user asked for it. */
export function endSession(notice: string | null): void {
  localStorage.removeItem(STORED_AS);
  sessionNotice.set(notice);
  session.set(null);
}

/** Has the server clear the cookie, which no script can. */
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
  session.set(undefined);
  try {
    const { user } = await whoAmI();
    session.set({ expiresAt, user });
  } catch (error) {
    // A refusal has ended the session already, with its reason.
    if (session.get() !== undefined || isAbort(error)) return;
    sessionNotice.set(error instanceof Error ? `The server could not be asked who is logged in: ${error.message}.` : null);
    session.set(null);
  }
}

onRefused(() => endSession("Your session has ended. Log in again to go on."));

// Another tab that logs in or out does so for this one too: both have the same cookie.
window.addEventListener("storage", (event) => {
  if (event.key === STORED_AS) void resumeSession();
});
