/** Who changed what, and from where. */
import { queryString, request, type Pagination } from "./client";

export interface AuditEntry {
  _id: string;
  at: string;
  /** The kind of the target and what was done to it, such as `rule.updated`. */
  action: string;
  actor: { kind: "user" | "key" | "operator"; _id: string | null; name: string };
  target: { kind: string; _id: string; name: string };
  /** By member `{old, new}`; of a deletion of points its `filters` and `deletedCount`. */
  changes: Record<string, unknown>;
  address: string | null;
}

export const listAudit = (limit: number, offset: number, signal?: AbortSignal) =>
  request<{ audit: AuditEntry[]; pagination: Pagination }>(
    "GET",
    `/api/organization/audit${queryString({ limit, offset })}`,
    { signal },
  );
