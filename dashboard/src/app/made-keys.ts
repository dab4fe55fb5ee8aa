/** Write keys made in this visit, by bucket: commands can be shown whole. In memory only, gone with the session. */
import { session } from "./session";
import { createStore } from "./store";

export const madeKeys = createStore<ReadonlyMap<string, string>>(new Map());

export function rememberKey(bucketId: string, key: string): void {
  madeKeys.set(new Map([...madeKeys.get(), [bucketId, key]]));
}

session.follow(() => {
  if (session.get() === null) madeKeys.set(new Map());
});
