/** The user's own sessions. */
import { allPages, queryString, request, type Pagination } from "./client";

export interface OwnSession {
  _id: string;
  createdAt: string;
  lastUsedAt: string;
  address: string | null;
  userAgent: string | null;
  /** Whether it is this page's own. */
  current: boolean;
}

export const listSessions = (signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/auth/sessions${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ sessions: OwnSession[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.sessions, pagination: answer.pagination };
  });

export const endOwnSession = (id: string) => request<unknown>("DELETE", `/api/auth/sessions/${id}`);
