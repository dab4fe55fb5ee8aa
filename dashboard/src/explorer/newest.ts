/** The newest point of each line: what a sensor said last, whatever the view makes of its points. */
import { runQuery, type Query, type QueryAnswer, type QueryRow, type Value } from "../api/query";
import type { BucketPlan } from "./plan";
import type { Span } from "./range";
import { fieldId, type FieldRef } from "./state";

export interface Newest {
  at: number;
  value: Value;
}

/** By `fieldId`. */
export type NewestPoints = ReadonlyMap<string, Newest>;

/**
 * Out of the latest points of a bucket, newest first. Where there are more than these, a line of a source that sends
 * more rarely than the others may not be among them, and is asked for by itself, if `expected` says that it is there.
 */
export async function newestPoints(
  bucket: BucketPlan,
  latest: QueryAnswer,
  span: Span,
  expected: (ref: FieldRef) => boolean,
  signal: AbortSignal,
): Promise<NewestPoints> {
  const found = new Map<string, Newest>();
  const note = (ref: FieldRef, rows: QueryRow[]) => {
    const row = rows.find((one) => one.dataSourceId === ref.sourceId && isValue(one.values[ref.field]));
    if (row === undefined) return;
    found.set(fieldId(ref), { at: Date.parse(row.timestamp), value: row.values[ref.field] ?? null });
  };
  for (const ref of bucket.refs) note(ref, latest.data);
  if (!latest.metadata.hasMore) return found;
  const missing = bucket.refs.filter((ref) => !found.has(fieldId(ref)) && expected(ref));
  const answers = await Promise.all(missing.map((ref) => runQuery(lastQuery(ref, span), signal)));
  for (const [index, ref] of missing.entries()) note(ref, answers[index]!.data);
  return found;
}

/** Both together; of two points of a line the newer one. */
export function newerOf(before: NewestPoints, after: NewestPoints): NewestPoints {
  const all = new Map(before);
  for (const [id, newest] of after) if (newest.at >= (all.get(id)?.at ?? -Infinity)) all.set(id, newest);
  return all;
}

const isValue = (value: Value | undefined): boolean => value !== undefined && value !== null;

function lastQuery({ bucketId, sourceId, field }: FieldRef, { from, to }: Span): Query {
  const [startTime, endTime] = [new Date(from).toISOString(), new Date(to).toISOString()];
  const filters = { dataSourceIds: [sourceId], fields: [field], startTime, endTime };
  return { bucketId, filters, limit: 1, sort: "desc", downsampling: false };
}
