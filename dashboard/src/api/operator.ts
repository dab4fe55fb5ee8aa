/** What whoever runs the server sees and changes, by the token of its configuration. */
import { ApiError, queryString, request, type Pagination } from "./client";
import type { Organization } from "./organization";

export const PLANS = ["Free", "Pro", "Enterprise"] as const;

export interface OrganizationsPage {
  organizations: Organization[];
  pagination: Pagination;
}

/** A running process of the server; what only a cluster has is null on one machine, here and below. */
export interface ClusterNode {
  id: string | null;
  address: string | null;
  shards: number;
  leaseSeconds: number | null;
  state: "member" | "leaving";
  isThis: boolean;
}

export interface ClusterShard {
  number: number;
  epoch: number | null;
  /** Id of a node; null if none owns it. */
  owner: string | null;
  lastSequence: number;
  coveredSequence: number;
  tailBytes: number;
  root: string | null;
}

export interface Cluster {
  clustered: boolean;
  readAt: string;
  commitsReplicated: boolean | null;
  weakness: string | null;
  unownedShards: number;
  nodes: ClusterNode[];
  shards: ClusterShard[];
}

/** Whether the server has an operator: its routes are there, and refuse a request without a token. */
export async function hasOperator(signal?: AbortSignal): Promise<boolean> {
  try {
    await request("GET", "/api/operator/cluster", { signal, bearer: null });
    return true;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return error.status === 401;
    throw error;
  }
}

export const readCluster = (bearer: string, signal?: AbortSignal) =>
  request<{ cluster: Cluster }>("GET", "/api/operator/cluster", { signal, bearer }).then((a) => a.cluster);

export const listOrganizations = (bearer: string, limit: number, offset: number, signal?: AbortSignal) =>
  request<OrganizationsPage>("GET", `/api/operator/organizations${queryString({ limit, offset })}`, { signal, bearer });

export const changePlan = (bearer: string, id: string, plan: string) =>
  request<{ organization: Organization }>("PATCH", `/api/operator/organizations/${id}`, { body: { plan }, bearer }).then(
    (a) => a.organization,
  );
