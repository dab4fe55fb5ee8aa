/** What of the organization has changed: an opaque word for each kind of thing. New points are no change. */
import { readUnless, type Tagged } from "./client";

export type Kind =
  | "organization"
  | "buckets"
  | "sources"
  | "rules"
  | "webhooks"
  | "keys"
  | "silences"
  | "annotations"
  | "boards"
  | "members";
export type Versions = Record<Kind, string>;

/** Null when nothing has changed since the answer with this tag. */
export async function readChanges(etag: string | null, signal?: AbortSignal): Promise<Tagged<Versions> | null> {
  const answer = await readUnless<{ changes: Versions }>("/api/changes", etag, signal);
  return answer === null ? null : { body: answer.body.changes, etag: answer.etag };
}
