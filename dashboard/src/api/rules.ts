/** Alert rules, their history, and the deliveries to their own URL. */
import { listBuckets, type Bucket } from "./buckets";
import { allPages, queryString, request, type Pagination } from "./client";
import type { DeliveriesPage } from "./webhooks";
import type { Aggregation, GroupBy, Matcher } from "./query";

export type RuleState = "armed" | "firing" | "clearing" | "unevaluated";
export type RuleStatus = "active" | "paused" | "inactive";
export type Outcome = "met" | "not_met" | "inconclusive";
export type Parameter = number | string | boolean;

export interface EvaluationInput {
  key: string;
  field: string;
  dataSourceId?: string;
  aggregation?: Aggregation;
  groupBy?: GroupBy;
  windowSeconds?: number;
  /** What stands in steps without values; kept by the page as it is. */
  fill?: string | number;
  timezone?: string;
  /** Conditions on dimensions, as in a query. */
  dimensions?: Record<string, Matcher>;
  groupByDimensions?: string[];
}

export interface Evaluation {
  mode?: "external";
  kind?: string;
  intervalSeconds: number;
  windowSeconds: number;
  inputs: EvaluationInput[];
  parameters: Record<string, Parameter>;
  dwellSeconds?: number;
}

export interface Rule {
  _id: string;
  bucketId: string;
  dataSourceId: string;
  name: string;
  condition: string;
  /** Null where only the evaluator understands the text. */
  parsedCondition: { field: string; operator: string; value: unknown; percent?: boolean } | null;
  webhookUrl: string | null;
  status: RuleStatus;
  cooldownMinutes: number;
  evaluation: Evaluation | null;
  state: RuleState;
  lastOutcome: Outcome | null;
  lastEvaluatedAt: string | null;
  conditionClearedAt: string | null;
  nextDueAt: string | null;
  overdue: boolean;
  /** Who knows that it has fired; null once it is armed again. */
  acknowledgement: { at: string; by: string; note: string | null } | null;
  lastTriggeredAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface RuleInput {
  bucketId?: string;
  dataSourceId?: string;
  name?: string;
  naturalLanguageQuery?: string;
  webhookUrl?: string | null;
  status?: RuleStatus;
  evaluation?: Evaluation | null;
}

export interface HistoryEntry {
  _id: string;
  at: string;
  kind: "verdict" | "trigger";
  outcome: Outcome;
  previousState: RuleState;
  state: RuleState;
  evidence: Record<string, unknown> | null;
  keyId: string;
  /** Of a trigger: the silence that kept it from being delivered, or null. */
  silenceId?: string | null;
}

export interface HistoryPage {
  history: HistoryEntry[];
  pagination: Pagination;
}

export const listRules = (bucketId: string, signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/buckets/${bucketId}/alerts${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ alertRules: Rule[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.alertRules, pagination: answer.pagination };
  });

/** The rules of every bucket. */
export async function listAllRules(signal?: AbortSignal): Promise<{ rules: Rule[]; buckets: Bucket[] }> {
  const buckets = await listBuckets(signal);
  const lists = await Promise.all(buckets.map((bucket) => listRules(bucket._id, signal)));
  return { rules: lists.flat(), buckets };
}

export const getRule = (id: string, signal?: AbortSignal) =>
  request<{ alertRule: Rule }>("GET", `/api/alerts/${id}`, { signal }).then((a) => a.alertRule);

export const createRule = (body: RuleInput) =>
  request<{ alertRule: Rule }>("POST", "/api/alerts", { body }).then((a) => a.alertRule);

export const changeRule = (id: string, body: RuleInput) =>
  request<{ alertRule: Rule }>("PATCH", `/api/alerts/${id}`, { body }).then((a) => a.alertRule);

export const acknowledgeRule = (id: string, note: string) =>
  request<{ alertRule: Rule }>("POST", `/api/alerts/${id}/acknowledge`, { body: note === "" ? {} : { note } }).then(
    (a) => a.alertRule,
  );

export const deleteRule = (id: string) => request<unknown>("DELETE", `/api/alerts/${id}`);

/** Newest first. */
export const ruleHistory = (id: string, limit: number, offset: number, signal?: AbortSignal) =>
  request<HistoryPage>("GET", `/api/alerts/${id}/history${queryString({ limit, offset })}`, { signal });

export const ruleDeliveries = (id: string, limit: number, offset: number, signal?: AbortSignal) =>
  request<DeliveriesPage>("GET", `/api/alerts/${id}/deliveries${queryString({ limit, offset })}`, { signal });
