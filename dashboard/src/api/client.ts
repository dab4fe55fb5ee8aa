/**
 * One request to the API: JSON in, JSON out, errors in the words of the server. The browser adds the cookie of the
 * session. Every resource file of this directory goes through this one; nothing else in the dashboard calls `fetch`.
 * It knows no page and no session: who wants to know that a session has ended, or that something was changed, says so
 * with `onRefused` and `onMutation`.
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
  /** A credential instead of the session's cookie, which is neither sent nor set; null for none at all. */
  bearer?: string | null;
  headers?: Record<string, string>;
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Requests that read although they are POSTs. */
const READS = new Set(["/api/data/query", "/api/alerts/backtest/verdicts"]);

let refused: () => void = () => undefined;
let mutated: () => void = () => undefined;

/** Whom to tell that the server does not know the user any more. */
export function onRefused(listener: () => void): void {
  refused = listener;
}

/** Whom to tell that a request of this page has changed something. */
export function onMutation(listener: () => void): void {
  mutated = listener;
}

/** Sends a request; rejects with `ApiError`, or `AbortError` when the signal fires. */
export async function request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
  const response = await exchange(method, path, options);
  const body = await bodyOf<T>(response, options);
  if (method !== "GET" && !READS.has(path) && isOfSession(options)) mutated();
  return body;
}

/** Whether the request speaks for who is logged in. */
const isOfSession = ({ anonymous, bearer }: RequestOptions) => !anonymous && bearer === undefined;

/** A body with the tag that names its version. */
export interface Tagged<T> {
  body: T;
  etag: string | null;
}

/** Reads what has another version than `etag`; null when it has not. */
export async function readUnless<T>(
  path: string,
  etag: string | null,
  signal?: AbortSignal,
): Promise<Tagged<T> | null> {
  const options = { signal, ...(etag === null ? {} : { headers: { "If-None-Match": etag } }) };
  const response = await exchange("GET", path, options);
  if (response.status === 304) return null;
  return { body: await bodyOf<T>(response, options), etag: response.headers.get("ETag") };
}

async function exchange(method: Method, path: string, options: RequestOptions): Promise<Response> {
  const headers = new Headers({ Accept: "application/json", ...options.headers });
  const credentials = options.bearer === undefined ? "same-origin" : "omit";
  const init: RequestInit = { method, headers, cache: "no-store", credentials };
  if (typeof options.bearer === "string") headers.set("Authorization", `Bearer ${options.bearer}`);
  if (options.signal !== undefined) init.signal = options.signal;
  if (options.body !== undefined) {
    headers.set("Content-Type", "application/json");
    init.body = JSON.stringify(options.body);
  }
  try {
    return await fetch(path, init);
  } catch (error) {
    throw isAbort(error) ? error : noAnswer();
  }
}

async function bodyOf<T>(response: Response, options: RequestOptions): Promise<T> {
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    // The connection broke in the middle of the answer.
    throw isAbort(error) ? error : noAnswer();
  }
  const body = parsed(text);
  if (response.ok) return body as T;
  const error = errorOf(response, body);
  if (response.status === 401 && !options.unauthorizedIsAnswer && isOfSession(options)) refused();
  throw error;
}

/** A file as the server names it. */
export interface File {
  name: string;
  content: Blob;
}

/**
 * Asks for a file. `onBytes` hears how many bytes have come so far. Rejects when the answer is cut off, so that a part of a
 * file is never taken for the whole.
 */
export async function download(
  path: string,
  body: unknown,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<File> {
  const response = await exchange("POST", path, { body, signal, headers: { Accept: "*/*" } });
  if (!response.ok || response.body === null) {
    await bodyOf(response, {});
    throw noAnswer();
  }
  const parts: BlobPart[] = [];
  let bytes = 0;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      bytes += value.length;
      onBytes(bytes);
    }
  } catch (error) {
    throw isAbort(error) ? error : cutOff();
  }
  const disposition = response.headers.get("Content-Disposition") ?? "";
  const name = /filename="([^"]+)"/.exec(disposition)?.[1] ?? "export";
  return { name, content: new Blob(parts, { type: response.headers.get("Content-Type") ?? "" }) };
}

const cutOff = () =>
  new ApiError(0, "Cut off", "the server ended the file before it was complete; nothing was saved, try again");

const noAnswer = () => new ApiError(0, "No answer", "the server did not answer; is it running, and are you online?");

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
