/** Webhooks and their deliveries. */
import { allPages, queryString, request, type Pagination } from "./client";

export const EVENTS = [
  "alert.triggered",
  "alert.resolved",
  "evaluation.overdue",
  "evaluation.resumed",
  "source.stale",
  "source.recovered",
  "data.received",
  "bucket.updated",
] as const;
export type Event = (typeof EVENTS)[number];

/** Forms of deliveries. */
export const FORMATS = ["standard", "slack", "teams", "ntfy", "pagerduty", "email", "template"] as const;
export type Format = (typeof FORMATS)[number];

export interface Webhook {
  _id: string;
  /** Null hears every bucket. */
  bucketId: string | null;
  url: string;
  events: Event[];
  /** Only in the answer to its creation. */
  secret?: string;
  format: Format;
  /** Null in other formats than `template`. */
  template: string | null;
  retryConfig: { maxRetries: number; backoffMultiplier: number };
  status: "active" | "paused";
  totalDeliveries: number;
  successfulDeliveries: number;
  failedDeliveries: number;
  lastDeliveryAt: string | null;
  lastDeliveryStatus: "delivered" | "failed" | null;
  createdAt: string;
  updatedAt: string;
}

export interface WebhookInput {
  url?: string;
  events?: Event[];
  bucketId?: string | null;
  secret?: string;
  format?: Format;
  template?: string;
  routingKey?: string;
  retryConfig?: { maxRetries: number; backoffMultiplier: number };
  status?: Webhook["status"];
}

export interface Attempt {
  at: string;
  statusCode?: number;
  error?: string;
  durationMs: number;
}

export interface Delivery {
  _id: string;
  webhookId: string;
  event: string;
  status: "pending" | "delivered" | "failed";
  attempts: Attempt[];
  nextAttemptAt: string | null;
  createdAt: string;
}

export interface DeliveriesPage {
  deliveries: Delivery[];
  pagination: Pagination;
}

export const listWebhooks = (signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/webhooks${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ webhooks: Webhook[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.webhooks, pagination: answer.pagination };
  });

export const getWebhook = (id: string, signal?: AbortSignal) =>
  request<{ webhook: Webhook }>("GET", `/api/webhooks/${id}`, { signal }).then((a) => a.webhook);

export const createWebhook = (body: WebhookInput) =>
  request<{ webhook: Webhook }>("POST", "/api/webhooks", { body }).then((a) => a.webhook);

export const changeWebhook = (id: string, body: WebhookInput) =>
  request<{ webhook: Webhook }>("PATCH", `/api/webhooks/${id}`, { body }).then((a) => a.webhook);

export const deleteWebhook = (id: string) => request<unknown>("DELETE", `/api/webhooks/${id}`);

export const testWebhook = (id: string) =>
  request<{ delivery: Delivery }>("POST", `/api/webhooks/${id}/test`).then((a) => a.delivery);

export const webhookDeliveries = (id: string, limit: number, offset: number, signal?: AbortSignal) =>
  request<DeliveriesPage>("GET", `/api/webhooks/${id}/deliveries${queryString({ limit, offset })}`, { signal });

export const redeliver = (webhookId: string, deliveryId: string) =>
  request<{ delivery: Delivery }>("POST", `/api/webhooks/${webhookId}/deliveries/${deliveryId}/redeliver`);
