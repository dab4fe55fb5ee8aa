/**
 * One request to the API: JSON in, JSON out, errors in the words of the server. The browser adds the cookie of the
 * session. Every resource file of this directory goes through `request`; nothing else in the dashboard calls `fetch`.
 * It knows no page and no session: who wants to know that a session has ended says so with `onRefused`.
 */

/** One fault of a request body: where, and what is wrong there. */
export interface Fault {
  path: string[];
  message: string;
}

/** What the server answers with any status of 400 and above. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** The error's type in words, `Not Found`. */
    readonly kind: string,
    message: string,
    readonly faults: Fault[] = [],
    readonly requestId: string | null = null,
  ) {
    super(message);
  }
}

/** What the answers of a limited plan say about the month's calls. */
export interface CallsLeft {
  limit: number;
  remaining: number;
  resetAt: number;
}

/** A part of a list and where it lies in the whole. */
export interface Pagination {
  limit: number;
  offset: number;
  total: number;
  hasMore: boolean;
}

interface RequestOptions {
  body?: unknown;
  signal?: AbortSignal;
  /** Answers of 401 that speak of the body, not of the session: a wrong password. */
  unauthorizedIsAnswer?: boolean;
  /** Asks for a session: a refusal does not end one. */
  anonymous?: boolean;
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";

let refused: () => void = () => undefined;
let callsLeft: CallsLeft | null = null;

/** Whom to tell that the server does not know the user any more. */
export function onRefused(listener: () => void): void {
  refused = listener;
}

/** From the newest answer; null on unlimited plans. */
export function latestCallsLeft(): CallsLeft | null {
  return callsLeft;
}

/** Sends a request; rejects with `ApiError`, or `AbortError` when the signal fires. */
export async function request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
  const headers = new Headers({ Accept: "application/json" });
  const init: RequestInit = { method, headers, cache: "no-store", credentials: "same-origin" };
  if (options.signal !== undefined) init.signal = options.signal;
  if (options.body !== undefined) {
    headers.set("Content-Type", "application/json");
    init.body = JSON.stringify(options.body);
  }
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "No answer", "the server did not answer; is it running, and are you online?");
  }
  noteCallsLeft(response.headers);
  const text = await response.text();
  const body = parsed(text);
  if (response.ok) return body as T;
  const error = errorOf(response, body);
  if (response.status === 401 && !options.unauthorizedIsAnswer && !options.anonymous) refused();
  throw error;
}

/** A query string of what is given, `?` included; empty when nothing is. */
export function queryString(members: Record<string, string | number | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

/** Whether a promise was given up on purpose. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Reads all pages of a list. Lists of the dashboard are short: a page holds 1,000. */
export async function allPages<T>(
  read: (offset: number) => Promise<{ items: T[]; pagination: Pagination }>,
): Promise<T[]> {
  const all: T[] = [];
  for (;;) {
    const page = await read(all.length);
    all.push(...page.items);
    if (!page.pagination.hasMore || page.items.length === 0) return all;
  }
}

function parsed(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

function errorOf(response: Response, body: unknown): ApiError {
  const requestId = response.headers.get("X-Request-Id");
  if (typeof body === "object" && body !== null && "message" in body && typeof body.message === "string") {
    const kind = "error" in body && typeof body.error === "string" ? body.error : response.statusText;
    const faults = "details" in body && Array.isArray(body.details) ? (body.details as Fault[]) : [];
    return new ApiError(response.status, kind, body.message, faults, requestId);
  }
  return new ApiError(response.status, response.statusText, `the server answered ${response.status}`, [], requestId);
}

function noteCallsLeft(headers: Headers): void {
  const limit = headers.get("X-RateLimit-Limit");
  const remaining = headers.get("X-RateLimit-Remaining");
  const reset = headers.get("X-RateLimit-Reset");
  if (limit === null || remaining === null || reset === null) return;
  callsLeft = { limit: Number(limit), remaining: Number(remaining), resetAt: Number(reset) * 1000 };
}
