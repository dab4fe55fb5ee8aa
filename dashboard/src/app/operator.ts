/** The operator's token: in the memory of this page only, so that it is gone with the tab. It is no one's session. */
import { ApiError } from "../api/client";
import { createStore } from "./store";

export const operatorToken = createStore<string | null>(null);
/** Why the token is asked for again. */
export const tokenNotice = createStore<string | null>(null);

/** `notice` says why, unless the operator asked for it. */
export function forgetToken(notice: string | null): void {
  tokenNotice.set(notice);
  operatorToken.set(null);
}

export function keepToken(token: string): void {
  tokenNotice.set(null);
  operatorToken.set(token);
}

/** Calls with the token, and forgets one that the server does not take any more. */
export async function asOperator<T>(call: (token: string) => Promise<T>): Promise<T> {
  const token = operatorToken.get() ?? "";
  try {
    return await call(token);
  } catch (error) {
    const isRefused = error instanceof ApiError && error.status === 401;
    if (isRefused && operatorToken.get() === token)
      forgetToken("The server does not take this token any more. Enter the one that it has now.");
    throw error;
  }
}
