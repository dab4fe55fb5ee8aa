/** Silences: times in which rules that fire are not delivered. */
import { allPages, queryString, request, type Pagination } from "./client";

export interface Silence {
  _id: string;
  /** Null, with `alertIds` null as well: all rules of the organization. */
  bucketId: string | null;
  alertIds: string[] | null;
  until: string;
  reason: string;
  createdAt: string;
  createdBy: string;
}

export interface SilenceInput {
  bucketId?: string;
  alertIds?: string[];
  until: string;
  reason: string;
}

/** Those that have not ended, oldest first. */
export const listSilences = (signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/silences${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ silences: Silence[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.silences, pagination: answer.pagination };
  });

export const createSilence = (body: SilenceInput) =>
  request<{ silence: Silence }>("POST", "/api/silences", { body }).then((a) => a.silence);

export const deleteSilence = (id: string) => request<unknown>("DELETE", `/api/silences/${id}`);
