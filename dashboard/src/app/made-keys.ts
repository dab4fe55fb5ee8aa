/** Keys made in this visit, by bucket: commands can be shown whole. In memory only, gone with the session. */
import type { BucketKeyType, CreatedKey } from "../api/keys";
import { session } from "./session";
import { createStore, useStore } from "./store";

type MadeKey = Pick<CreatedKey, "_id" | "key" | "type">;

const madeKeys = createStore<ReadonlyMap<string, MadeKey>>(new Map());

const placeOf = (bucketId: string, type: CreatedKey["type"]): string => `${bucketId} ${type}`;

/** The newest key of this type that was made for the bucket. */
export const useMadeKey = (bucketId: string, type: BucketKeyType): string | null =>
  useStore(madeKeys).get(placeOf(bucketId, type))?.key ?? null;

export function rememberKey(bucketId: string, { _id, key, type }: MadeKey): void {
  madeKeys.set(new Map([...madeKeys.get(), [placeOf(bucketId, type), { _id, key, type }]]));
}

/** A deleted key opens nothing any more. */
export function forgetKey(id: string): void {
  madeKeys.set(new Map([...madeKeys.get()].filter(([, made]) => made._id !== id)));
}

session.follow(() => {
  if (session.get() === null) madeKeys.set(new Map());
});
