/** Who is logged in, kept in localStorage until the token expires, and why a session ended. */
import type { SignedIn, User } from "../api/accounts";
import { authorizeWith } from "../api/client";
import { createStore } from "./store";

export interface Session {
  token: string;
  expiresAt: string;
  user: User;
}

const STORED_AS = "tidewatch.session";

/** What the login page says when it was not asked for. */
export const sessionNotice = createStore<string | null>(null);
export const session = createStore<Session | null>(stored());

function currentSession(): Session | null {
  const current = session.get();
  if (current !== null && Date.parse(current.expiresAt) <= Date.now()) {
    endSession("Your session has ended after twelve hours. Log in again to go on.");
    return null;
  }
  return current;
}

export function beginSession(answer: SignedIn): void {
  const begun: Session = { token: answer.token, expiresAt: answer.expiresAt, user: answer.user };
  localStorage.setItem(STORED_AS, JSON.stringify(begun));
  sessionNotice.set(null);
  session.set(begun);
}

/** `notice` says why, unless the user asked for it. */
export function endSession(notice: string | null): void {
  localStorage.removeItem(STORED_AS);
  sessionNotice.set(notice);
  session.set(null);
}

authorizeWith({
  token: () => currentSession()?.token ?? null,
  refused: () => endSession("Your session has ended. Log in again to go on."),
});

// Another tab that logs in or out does so for this one too: both read the same storage.
window.addEventListener("storage", (event) => {
  if (event.key === STORED_AS) session.set(stored());
});

function stored(): Session | null {
  try {
    const value = JSON.parse(localStorage.getItem(STORED_AS) ?? "null") as Session | null;
    if (value === null || typeof value.token !== "string") return null;
    return Date.parse(value.expiresAt) > Date.now() ? value : null;
  } catch {
    return null;
  }
}
