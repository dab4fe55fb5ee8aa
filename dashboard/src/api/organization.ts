/** The organization, its plan and the keys that span it. */
import { allPages, queryString, request, type Pagination } from "./client";
import type { CreatedKey, Key, NewKey } from "./keys";

export interface Plan {
  name: string;
  /** Null is unlimited, here and below. */
  maxBuckets: number | null;
  maxRetentionDays: number | null;
  maxApiCalls: number | null;
}

export interface Organization {
  _id: string;
  name: string;
  plan: Plan;
  createdAt: string;
  updatedAt: string;
}

export type OrganizationKeyType = "admin" | "integration";

export const getOrganization = (signal?: AbortSignal) =>
  request<{ organization: Organization }>("GET", "/api/organization", { signal }).then((a) => a.organization);

export const renameOrganization = (name: string) =>
  request<{ organization: Organization }>("PATCH", "/api/organization", { body: { name } }).then((a) => a.organization);

export const listOrganizationKeys = (signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/organization/keys${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ apiKeys: Key[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.apiKeys, pagination: answer.pagination };
  });

export const createOrganizationKey = (body: NewKey<OrganizationKeyType>) =>
  request<{ apiKey: CreatedKey }>("POST", "/api/organization/keys", { body }).then((a) => a.apiKey);

/** Gives a key a new value; the former one works for so long. */
export const rotateOrganizationKey = (id: string, overlapSeconds: number) =>
  request<{ apiKey: CreatedKey }>("POST", `/api/organization/keys/${id}/rotate`, { body: { overlapSeconds } }).then(
    (a) => a.apiKey,
  );

export const deleteOrganizationKey = (id: string) => request<unknown>("DELETE", `/api/organization/keys/${id}`);
