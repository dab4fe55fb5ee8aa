/** Write keys made in this visit, by bucket: commands can be shown whole. In memory only, gone with the session. */
import { session } from "./session";
import { createStore } from "./store";

interface MadeKey {
  _id: string;
  key: string;
}

export const madeKeys = createStore<ReadonlyMap<string, MadeKey>>(new Map());

export function rememberKey(bucketId: string, { _id, key }: MadeKey): void {
  madeKeys.set(new Map([...madeKeys.get(), [bucketId, { _id, key }]]));
}

/** A deleted key opens nothing any more. */
export function forgetKey(id: string): void {
  madeKeys.set(new Map([...madeKeys.get()].filter(([, made]) => made._id !== id)));
}

session.follow(() => {
  if (session.get() === null) madeKeys.set(new Map());
});
