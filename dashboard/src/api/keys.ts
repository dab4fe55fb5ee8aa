/** The keys of a bucket, and what all keys look like. */
import { allPages, queryString, request, type Pagination } from "./client";

export interface Key {
  _id: string;
  name: string;
  type: "write" | "read" | "admin" | "integration";
  bucketId?: string;
  keyPrefix: string;
  createdAt: string;
  /** Null: never. An expired key stays listed. */
  expiresAt: string | null;
  lastUsedAt: string | null;
  callsThisMonth: number;
}

/** With the whole value, which is never shown again. */
export interface CreatedKey {
  _id: string;
  name: string;
  type: Key["type"];
  key: string;
  permissions: string[];
}

/** What a new key is made of. */
export interface NewKey<Type = Key["type"]> {
  name: string;
  type: Type;
  expiresAt?: string;
}

export type BucketKeyType = "write" | "read";

export const listBucketKeys = (bucketId: string, signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/buckets/${bucketId}/keys${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ apiKeys: Key[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.apiKeys, pagination: answer.pagination };
  });

export const createBucketKey = (bucketId: string, body: NewKey<BucketKeyType>) =>
  request<{ apiKey: CreatedKey }>("POST", `/api/buckets/${bucketId}/keys`, { body }).then((a) => a.apiKey);

/** Gives a key a new value; the former one works for so long. */
export const rotateBucketKey = (bucketId: string, keyId: string, overlapSeconds: number) =>
  request<{ apiKey: CreatedKey }>("POST", `/api/buckets/${bucketId}/keys/${keyId}/rotate`, {
    body: { overlapSeconds },
  }).then((a) => a.apiKey);

export const deleteBucketKey = (bucketId: string, keyId: string) =>
  request<unknown>("DELETE", `/api/buckets/${bucketId}/keys/${keyId}`);
