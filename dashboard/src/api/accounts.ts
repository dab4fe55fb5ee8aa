/** Sign-up, log-in and the password. */
import { request } from "./client";
import type { Organization } from "./organization";

export interface User {
  _id: string;
  email: string;
  name: string;
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
