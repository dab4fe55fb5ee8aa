/** Prepares objects through the public API. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Account {
  url: string;
  token: string;
  email: string;
  password: string;
}

export async function call<T>(
  account: Account,
  method: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<T> {
  const response = await fetch(account.url + path, {
    method,
    headers: {
      "Content-Type": "application/json",
      ...(key === undefined ? { Authorization: `Bearer ${account.token}` } : { "X-API-Key": key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

let accounts = 0;

export async function signUp(url: string, name = "Ada", organizationName = "Harbour"): Promise<Account> {
  const account = { url, token: "", email: `ada-${process.pid}-${++accounts}@example.com`, password: "correct horse" };
  const body = { email: account.email, password: account.password, name, organizationName };
  const response = await fetch(`${url}/api/auth/signup`, { method: "POST", body: JSON.stringify(body) });
  const answer = (await response.json()) as { token: string };
  return { ...account, token: answer.token };
}

export interface World {
  bucketId: string;
  sourceId: string;
  ruleId: string;
  webhookId: string;
  integrationKey: string;
}

/** Names of the objects in a world; the defaults are harmless. */
export interface Names {
  bucket: string;
  source: string;
  field: string;
  text: string;
  rule: string;
  key: string;
  evidence: unknown;
  metadata: Record<string, unknown>;
  webhookUrl: string;
}

const HARMLESS: Names = {
  bucket: "Pumping station",
  source: "Pump 1",
  field: "vibration",
  text: "auto",
  rule: "Pump 1 shakes",
  key: "edge gateway",
  evidence: { currentValue: 6.8, note: "two of five points above" },
  metadata: { firmware: "2.4.1" },
  webhookUrl: "http://127.0.0.1:9/hooks/pager",
};

export const POINTS = 120;

/** Creates a bucket, a source with an hour or two of points, keys, a rule that has fired, and a webhook. */
export async function createWorld(account: Account, given: Partial<Names> = {}): Promise<World> {
  const names = { ...HARMLESS, ...given };
  const bucket = await call<{ bucket: { _id: string } }>(account, "POST", "/api/buckets", {
    name: names.bucket,
    description: names.text,
  });
  const bucketId = bucket.bucket._id;
  const schema = {
    [names.field]: { type: "number", unit: "mm/s", description: names.text },
    running: { type: "boolean" },
    mode: { type: "string" },
  };
  const source = await call<{ dataSource: { _id: string } }>(account, "POST", `/api/buckets/${bucketId}/sources`, {
    name: names.source,
    description: names.text,
    schema,
  });
  const sourceId = source.dataSource._id;
  await call(account, "POST", `/api/buckets/${bucketId}/keys`, { name: names.key, type: "write" });
  const now = Date.now();
  const dataPoints = Array.from({ length: POINTS }, (_, index) => ({
    dataSourceId: sourceId,
    timestamp: new Date(now - (POINTS - index) * 60_000).toISOString(),
    values: { [names.field]: 2 + Math.sin(index / 9), running: index % 40 !== 0, mode: names.text },
    metadata: names.metadata,
  }));
  await call(account, "POST", "/api/data/batch", { bucketId, dataPoints });
  const webhook = await call<{ webhook: { _id: string } }>(account, "POST", "/api/webhooks", {
    url: names.webhookUrl,
    events: ["alert.triggered"],
    retryConfig: { maxRetries: 0, backoffMultiplier: 1 },
  });
  const integration = await call<{ apiKey: { key: string } }>(account, "POST", "/api/organization/keys", {
    name: names.key,
    type: "integration",
  });
  const rule = await call<{ alertRule: { _id: string } }>(account, "POST", "/api/alerts", {
    bucketId,
    dataSourceId: sourceId,
    name: names.rule,
    naturalLanguageQuery: `it is worse than ${names.text}`,
    evaluation: {
      kind: names.text.slice(0, 64),
      intervalSeconds: 60,
      windowSeconds: 300,
      inputs: [{ key: "x", field: names.field }],
      parameters: { [names.text]: names.text },
    },
  });
  const ruleId = rule.alertRule._id;
  await call(
    account,
    "POST",
    `/api/evaluations/${ruleId}/verdict`,
    { outcome: "met", evidence: names.evidence },
    integration.apiKey.key,
  );
  return { bucketId, sourceId, ruleId, webhookId: webhook.webhook._id, integrationKey: integration.apiKey.key };
}

export interface SourceRef {
  bucketId: string;
  sourceId: string;
}

export interface Sent {
  at: number;
  values: Record<string, number | string | boolean>;
  metadata?: Record<string, unknown>;
}

/** Creates a source, in `bucketId` or in a new bucket. */
export async function createSource(
  account: Account,
  schema: Record<string, { type: string; unit?: string }>,
  { name = "Meter", bucketId, dimensions = null }: { name?: string; bucketId?: string; dimensions?: string[] | "all" | null } = {},
): Promise<SourceRef> {
  const made = bucketId ?? (await createBucket(account, `${name} ${++bucketsMade}`));
  const path = `/api/buckets/${made}/sources`;
  const source = await call<{ dataSource: { _id: string } }>(account, "POST", path, {
    name,
    schema,
    dimensions,
  });
  return { bucketId: made, sourceId: source.dataSource._id };
}

let bucketsMade = 0;

async function createBucket(account: Account, name: string): Promise<string> {
  return (await call<{ bucket: { _id: string } }>(account, "POST", "/api/buckets", { name })).bucket._id;
}

export async function send(account: Account, { bucketId, sourceId }: SourceRef, points: Sent[]): Promise<void> {
  for (let start = 0; start < points.length; start += 1000) {
    const dataPoints = points.slice(start, start + 1000).map(({ at, values, metadata }) => ({
      dataSourceId: sourceId,
      timestamp: new Date(at).toISOString(),
      values,
      metadata,
    }));
    await call(account, "POST", "/api/data/batch", { bucketId, dataPoints });
  }
}

/** Starts a receiver of webhooks. */
export async function startReceiver(): Promise<{ url: string; bodies: string[]; server: Server }> {
  const bodies: string[] = [];
  const server = createServer((incoming, outgoing) => {
    let body = "";
    incoming.on("data", (chunk: Buffer) => (body += chunk.toString()));
    incoming.on("end", () => {
      bodies.push(body);
      outgoing.writeHead(200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, bodies, server };
}

/** All pages of a world by hash. */
export function pagesOf({ bucketId, sourceId, ruleId, webhookId }: World, field: string): Record<string, string> {
  const chosen = [field, "running", "mode"]
    .map((name) => `f=${bucketId}.${sourceId}.${encodeURIComponent(name)}`)
    .join("&");
  return {
    overview: "#/",
    explorer: `#/explore?${chosen}&r=6h`,
    "explorer-grouped": `#/explore?${chosen}&r=6h&by=hour`,
    boards: "#/boards",
    buckets: "#/buckets",
    bucket: `#/buckets/${bucketId}`,
    sources: `#/buckets/${bucketId}/sources`,
    keys: `#/buckets/${bucketId}/keys`,
    connect: `#/buckets/${bucketId}/connect`,
    "bucket-rules": `#/buckets/${bucketId}/rules`,
    source: `#/buckets/${bucketId}/sources/${sourceId}`,
    "source-edit": `#/buckets/${bucketId}/sources/${sourceId}/edit`,
    "source-new": `#/buckets/${bucketId}/sources/new`,
    rules: "#/rules",
    rule: `#/rules/${ruleId}`,
    "rule-edit": `#/rules/${ruleId}/edit`,
    "rule-new": `#/rules/new?bucket=${bucketId}&source=${sourceId}`,
    webhooks: "#/webhooks",
    webhook: `#/webhooks/${webhookId}`,
    organization: "#/organization",
    account: "#/account",
    missing: "#/nowhere",
  };
}
