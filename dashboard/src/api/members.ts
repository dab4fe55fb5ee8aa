/** The people of the organization, and those who are invited. */
import type { Role } from "./accounts";
import { allPages, queryString, request, type Pagination } from "./client";

export interface Member {
  _id: string;
  email: string;
  name: string;
  role: Role;
  createdAt: string;
  /** Who invited; null for who signed up. */
  createdBy: string | null;
}

export interface Invitation {
  _id: string;
  email: string;
  role: Role;
  createdAt: string;
  createdBy: string;
  expiresAt: string;
}

/** With the address of the page that takes it, which is never shown again. */
export interface Link {
  token: string;
  url: string;
  expiresAt: string;
}

export const listMembers = (signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/organization/members${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ members: Member[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.members, pagination: answer.pagination };
  });

export const changeRole = (userId: string, role: Role) =>
  request<{ member: Member }>("PATCH", `/api/organization/members/${userId}`, { body: { role } }).then((a) => a.member);

export const removeMember = (userId: string) => request<unknown>("DELETE", `/api/organization/members/${userId}`);

export const createReset = (userId: string) =>
  request<{ reset: Link }>("POST", `/api/organization/members/${userId}/reset`).then((a) => a.reset);

export const listInvitations = (signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/organization/invitations${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ invitations: Invitation[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.invitations, pagination: answer.pagination };
  });

export const invite = (email: string, role: Role) =>
  request<{ invitation: Invitation & Link }>("POST", "/api/organization/invitations", { body: { email, role } }).then(
    (a) => a.invitation,
  );

export const withdrawInvitation = (id: string) => request<unknown>("DELETE", `/api/organization/invitations/${id}`);
