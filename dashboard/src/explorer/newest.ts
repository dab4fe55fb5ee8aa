/** The newest point of each line: what a sensor said last, whatever the view makes of its points. */
import { runQuery, type Query, type QueryAnswer, type QueryRow, type Value } from "../api/query";
import type { Part } from "./fetch";
import { newestQuery, type BucketPlan, type Taken } from "./plan";
import type { Span } from "./range";
import { fieldId, type FieldRef } from "./state";

export interface Newest {
  at: number;
  value: NonNullable<Value>;
}

/** By `fieldId`. */
export type NewestPoints = ReadonlyMap<string, Newest>;

/**
 * Out of the latest points of a bucket, newest first. Where there are more than these, a line of a source that sends
 * more rarely than the others may not be among them: it is looked up in what the chart has, or asked for by itself.
 */
export async function newestPoints(
  taken: Taken,
  bucket: BucketPlan,
  latest: QueryAnswer,
  drawn: Part | null,
  span: Span,
  signal: AbortSignal,
): Promise<NewestPoints> {
  const found = new Map<string, Newest>();
  const note = (ref: FieldRef, rows: QueryRow[]) => {
    const row = rows.find((one) => one.dataSourceId === ref.sourceId && isValue(one.values[ref.field]));
    if (row === undefined) return;
    found.set(fieldId(ref), { at: Date.parse(row.timestamp), value: row.values[ref.field]! });
  };
  for (const ref of bucket.refs) note(ref, latest.data);
  if (!latest.metadata.hasMore || drawn === null) return found;
  const asked: FieldRef[] = [];
  for (const ref of bucket.refs.filter((one) => !found.has(fieldId(one)))) {
    const last = lastDrawn(drawn, ref);
    if (last === null) continue;
    if (drawn.groupBy === null) found.set(fieldId(ref), last);
    else asked.push(ref);
  }
  const answers = await Promise.all(asked.map((ref) => runQuery(lastQuery(taken, ref, span), signal)));
  for (const [index, ref] of asked.entries()) note(ref, answers[index]!.data);
  return found;
}

function lastDrawn(drawn: Part, ref: FieldRef): Newest | null {
  const table = drawn.tables.get(ref.sourceId);
  const values = table?.values.get(ref.field);
  if (table === undefined || values === undefined) return null;
  const index = values.findLastIndex(isValue);
  return index < 0 ? null : { at: table.times[index]!, value: values[index]! };
}

/** Both together; of two points of a line the newer one. */
export function newerOf(before: NewestPoints, after: NewestPoints): NewestPoints {
  const all = new Map(before);
  for (const [id, newest] of after) if (newest.at >= (all.get(id)?.at ?? -Infinity)) all.set(id, newest);
  return all;
}

const isValue = (value: Value | undefined): value is NonNullable<Value> => value !== undefined && value !== null;

const lastQuery = (taken: Taken, { bucketId, sourceId, field }: FieldRef, span: Span): Query =>
  newestQuery(taken, { bucketId, sourceIds: [sourceId] }, [field], span, 1);
