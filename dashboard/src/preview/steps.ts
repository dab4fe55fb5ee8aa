/** Sums of an input over short steps of time, of which all windows of a backtest are made. */
import { request } from "../api/client";
import { QUERY_ROWS_MAX, type Aggregation, type Matcher, type Value } from "../api/query";
import { timesOf, type Span } from "../explorer/range";

/** Queries that one input may need for each of its questions. */
const PAGES_MAX = 3;
export const STEPS_MAX = PAGES_MAX * QUERY_ROWS_MAX;

export interface StepQuestion {
  bucketId: string;
  sourceId: string;
  field: string;
  stepSeconds: number;
  span: Span;
  aggregations: Aggregation[];
  /** Only series of these dimensions. */
  dimensions?: Record<string, Matcher> | undefined;
  /** Only points whose value passes. */
  passing?: Record<string, Value>;
}

/** Steps that have points, oldest first. */
export interface Steps {
  /** Where each begins, in milliseconds. */
  starts: number[];
  /** By aggregation, as long as `starts`. */
  values: Partial<Record<Aggregation, Value[]>>;
}

interface Answer {
  columns: { timestamp: string[]; values: Record<string, Partial<Record<Aggregation, Value[]>>> };
  metadata: { hasMore: boolean };
}

export async function readSteps(question: StepQuestion, signal: AbortSignal): Promise<Steps> {
  const { bucketId, sourceId, field, stepSeconds, span, aggregations, dimensions, passing } = question;
  const body = {
    bucketId,
    filters: {
      dataSourceIds: [sourceId],
      fields: [field],
      ...timesOf(span),
      ...(dimensions === undefined ? {} : { dimensions }),
      ...(passing === undefined ? {} : { values: { [field]: passing } }),
    },
    aggregation: aggregations,
    groupBy: `${stepSeconds}s`,
    layout: "columns",
    limit: QUERY_ROWS_MAX,
  };
  const steps: Steps = { starts: [], values: Object.fromEntries(aggregations.map((name) => [name, []])) };
  for (;;) {
    const asked = { ...body, offset: steps.starts.length };
    const { columns, metadata } = await request<Answer>("POST", "/api/data/query", { body: asked, signal });
    const of = columns.values[field] ?? {};
    for (const [row, timestamp] of columns.timestamp.entries()) {
      steps.starts.push(Date.parse(timestamp));
      for (const name of aggregations) steps.values[name]!.push(of[name]?.[row] ?? null);
    }
    if (!metadata.hasMore || columns.timestamp.length === 0) return steps;
  }
}

/** A column of numbers; what is missing is 0, as a count of it is. */
export const numbers = (steps: Steps, name: Aggregation): number[] =>
  (steps.values[name] ?? []).map((value) => (typeof value === "number" ? value : 0));
