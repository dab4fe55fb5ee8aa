/** Buckets. */
import { allPages, queryString, request, type Pagination } from "./client";

export interface Bucket {
  _id: string;
  name: string;
  description?: string;
  organizationId: string;
  retentionDays: number;
  status: string;
  createdAt: string;
  updatedAt: string;
  /** Only when asked for by its id. */
  stats?: { dataSourceCount: number; dataPointCount: number; apiKeyCount: number };
}

export interface BucketInput {
  name?: string;
  description?: string;
  retentionDays?: number;
}

export interface DeletedWithBucket {
  dataSources: number;
  dataPoints: number;
  apiKeys: number;
  alertRules: number;
}

export const listBuckets = (signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/buckets${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ buckets: Bucket[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.buckets, pagination: answer.pagination };
  });

export const getBucket = (id: string, signal?: AbortSignal) =>
  request<{ bucket: Bucket }>("GET", `/api/buckets/${id}`, { signal }).then((a) => a.bucket);

export const createBucket = (body: BucketInput) =>
  request<{ bucket: Bucket }>("POST", "/api/buckets", { body }).then((a) => a.bucket);

export const changeBucket = (id: string, body: BucketInput) =>
  request<{ bucket: Bucket }>("PATCH", `/api/buckets/${id}`, { body }).then((a) => a.bucket);

export const deleteBucket = (id: string) =>
  request<{ deletedResources: DeletedWithBucket }>("DELETE", `/api/buckets/${id}`).then((a) => a.deletedResources);
