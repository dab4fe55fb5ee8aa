/** The keys of a bucket, and what all keys look like. */
import { allPages, queryString, request, type Pagination } from "./client";

export interface Key {
  _id: string;
  name: string;
  type: "write" | "read" | "admin" | "integration";
  bucketId?: string;
  keyPrefix: string;
  createdAt: string;
  lastUsedAt: string | null;
}

/** With the whole value, which is never shown again. */
export interface CreatedKey {
  _id: string;
  name: string;
  type: Key["type"];
  key: string;
  permissions: string[];
}

export type BucketKeyType = "write" | "read";

export const listBucketKeys = (bucketId: string, signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/buckets/${bucketId}/keys${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ apiKeys: Key[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.apiKeys, pagination: answer.pagination };
  });

export const createBucketKey = (bucketId: string, name: string, type: BucketKeyType) =>
  request<{ apiKey: CreatedKey }>("POST", `/api/buckets/${bucketId}/keys`, { body: { name, type } }).then(
    (a) => a.apiKey,
  );

export const deleteBucketKey = (bucketId: string, keyId: string) =>
  request<unknown>("DELETE", `/api/buckets/${bucketId}/keys/${keyId}`);
