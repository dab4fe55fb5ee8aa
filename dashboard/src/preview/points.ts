/** The newest numbers of a field themselves, for kinds that no sums of steps are enough for. */
import { QUERY_ROWS_MAX, type ColumnsAnswer } from "../api/query";
import { request } from "../api/client";
import { timesOf, type Span } from "../explorer/range";
import type { Task } from "./tasks";

const PAGES_MAX = 5;
export const POINTS_MAX = PAGES_MAX * QUERY_ROWS_MAX;

export interface Points {
  /** Milliseconds, ascending. */
  times: number[];
  numbers: number[];
  /** From when on there is nothing left out. */
  from: number;
}

/** From the newest back, as far as so many pages reach. */
export async function readPoints(
  { bucketId, sourceId, field, dimensions }: Pick<Task, "bucketId" | "sourceId" | "field" | "dimensions">,
  span: Span,
  signal: AbortSignal,
): Promise<Points> {
  const body = {
    bucketId,
    filters: { dataSourceIds: [sourceId], fields: [field], ...timesOf(span), ...(dimensions === undefined ? {} : { dimensions }) },
    sort: "desc",
    limit: QUERY_ROWS_MAX,
    downsampling: false,
    layout: "columns",
  };
  const points: Points = { times: [], numbers: [], from: span.from };
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const asked = cursor === undefined ? body : { ...body, cursor };
    const { columns, metadata } = await request<ColumnsAnswer>("POST", "/api/data/query", { body: asked, signal });
    for (const [row, timestamp] of columns.timestamp.entries()) {
      const value = columns.values[field]?.[row];
      if (typeof value !== "number") continue;
      points.times.push(Date.parse(timestamp));
      points.numbers.push(value);
    }
    cursor = metadata.nextCursor;
    if (cursor === undefined) break;
  }
  // Of the oldest millisecond, not all points may have been read.
  if (cursor !== undefined) points.from = (points.times.at(-1) ?? span.to) + 1;
  points.times.reverse();
  points.numbers.reverse();
  return points;
}
