/** Sign-up, log-in, links that lead to an account, and the password. */
import { request } from "./client";
import type { Organization } from "./organization";

/** What a member may do; each role may do what those before it may. */
export const ROLES = ["viewer", "editor", "owner"] as const;
export type Role = (typeof ROLES)[number];

export interface User {
  _id: string;
  email: string;
  name: string;
  role: Role;
}

export interface Account {
  user: User;
  organization: Organization;
}

/** The answer's token is for programs: the page's own comes with it as a cookie. */
export interface SignedIn extends Account {
  expiresAt: string;
}

export interface SignUp {
  email: string;
  password: string;
  name: string;
  organizationName?: string;
}

/** Whether accounts can be made here, and whether the next would be the server's first. */
export const signUpState = (signal?: AbortSignal) =>
  request<{ open: boolean; first: boolean }>("GET", "/api/auth/status", { signal, anonymous: true });

export const signUp = (body: SignUp) => request<SignedIn>("POST", "/api/auth/signup", { body, anonymous: true });

export const logIn = (email: string, password: string) =>
  request<SignedIn>("POST", "/api/auth/login", { body: { email, password }, anonymous: true });

/** Makes the account of an invited person; the link names the address. */
export const acceptInvitation = (body: { token: string; name: string; password: string }) =>
  request<SignedIn>("POST", "/api/auth/invitations/accept", { body, anonymous: true });

/** Sets a new password with an owner's link. */
export const resetPassword = (token: string, newPassword: string) =>
  request<SignedIn>("POST", "/api/auth/reset", { body: { token, newPassword }, anonymous: true });

export const whoAmI = () => request<Account>("GET", "/api/auth/me");

/** A session that begins now, in the place of this one. */
export const renewSession = () => request<SignedIn>("POST", "/api/auth/renew");

/** Ends the session and clears the cookie. */
export const logOut = () => request<{ message: string }>("POST", "/api/auth/logout");

/** Other sessions end; this one's cookie is replaced. */
export const changePassword = (currentPassword: string, newPassword: string) =>
  request<SignedIn>("POST", "/api/auth/password", {
    body: { currentPassword, newPassword },
    unauthorizedIsAnswer: true,
  });
