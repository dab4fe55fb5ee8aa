/** Sign-up, log-in and the password. */
import { request } from "./client";
import type { Organization } from "./organization";

export interface User {
  _id: string;
  email: string;
  name: string;
}

export interface SignedIn {
  token: string;
  expiresAt: string;
  user: User;
  organization: Organization;
}

export interface SignUp {
  email: string;
  password: string;
  name: string;
  organizationName?: string;
}

export const signUp = (body: SignUp) => request<SignedIn>("POST", "/api/auth/signup", { body, anonymous: true });

export const logIn = (email: string, password: string) =>
  request<SignedIn>("POST", "/api/auth/login", { body: { email, password }, anonymous: true });

/** The answer's token replaces the session's: older ones stop working. */
export const changePassword = (currentPassword: string, newPassword: string) =>
  request<SignedIn>("POST", "/api/auth/password", {
    body: { currentPassword, newPassword },
    unauthorizedIsAnswer: true,
  });
