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

export const signUp = (body: SignUp) => request<SignedIn>("POST", "/api/auth/signup", { body, anonymous: true });

export const logIn = (email: string, password: string) =>
  request<SignedIn>("POST", "/api/auth/login", { body: { email, password }, anonymous: true });

export const whoAmI = () => request<Account>("GET", "/api/auth/me");

/** Clears the cookie. */
export const logOut = () => request<{ message: string }>("POST", "/api/auth/logout");

/** Other sessions end; this one's cookie is replaced. */
export const changePassword = (currentPassword: string, newPassword: string) =>
  request<SignedIn>("POST", "/api/auth/password", {
    body: { currentPassword, newPassword },
    unauthorizedIsAnswer: true,
  });
