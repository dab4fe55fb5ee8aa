/** Configurations of agents that write to a bucket as they are, and of readers of it, with the key in them. Pure. */
import type { BucketKeyType } from "../api/keys";
import { PLACEHOLDERS, isLoopback, shellQuoted } from "./snippets";

export interface AgentTarget {
  origin: string;
  /** The bucket's name, for readers: the key alone says which bucket is meant. */
  bucket: string;
  /** Null: the placeholder stands for it. */
  key: string | null;
}

export interface AgentSnippet {
  title: string;
  code: string;
}

export interface Agent {
  id: string;
  label: string;
  /** The type of the key that it needs. */
  keyType: BucketKeyType;
  /** What becomes of what it sends, or what it asks. */
  text: string;
  snippets: (target: AgentTarget) => AgentSnippet[];
}

/** A string of YAML and of TOML in quotes: both read JSON's escapes. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll("\u007f", "\\u007f");

/** What is written behind a `#`: a name cannot end the comment. */
const commented = (text: string): string => text.replace(/\s+/g, " ");

const withKey =
  (keyType: BucketKeyType, snippets: (target: AgentTarget & { key: string }) => AgentSnippet[]) =>
  (target: AgentTarget) =>
    snippets({ ...target, key: target.key ?? PLACEHOLDERS[keyType] });

/** Agents on other machines do not find the loopback address of this one. */
const elsewhere = (origin: string): string =>
  isLoopback(origin) ? "# On another machine: this server's address there instead,\n# and let the server listen there.\n" : "";

const telegraf = withKey("write", ({ origin, bucket, key }) => [
  {
    title: "telegraf.conf",
    code: `${elsewhere(origin)}[[outputs.influxdb_v2]]
  urls = [${quoted(origin)}]
  token = ${quoted(key)}
  # The key says which bucket is meant; Telegraf wants names, too.
  organization = "tidewatch"
  bucket = ${quoted(bucket)}

[[inputs.cpu]]
[[inputs.mem]]
`,
  },
  { title: "Run it", code: "telegraf --config telegraf.conf" },
]);

const prometheus = withKey("write", ({ origin, key }) => [
  {
    title: "prometheus.yml",
    code: `${elsewhere(origin)}remote_write:
  - url: ${quoted(`${origin}/api/v1/write`)}
    authorization:
      credentials: ${quoted(key)}
`,
  },
]);

const openTelemetry = withKey("write", ({ origin, key }) => [
  {
    title: "Collector: config.yaml",
    code: `${elsewhere(origin)}receivers:
  otlp:
    protocols:
      grpc:
      http:

exporters:
  otlphttp/tidewatch:
    # The exporter adds /v1/metrics.
    endpoint: ${quoted(origin)}
    compression: gzip
    headers:
      Authorization: ${quoted(`Bearer ${key}`)}

service:
  pipelines:
    metrics:
      receivers: [otlp]
      exporters: [otlphttp/tidewatch]
`,
  },
  {
    title: "An application with an SDK: environment",
    code: `export OTEL_METRICS_EXPORTER=otlp
export OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=${shellQuoted(`${origin}/v1/metrics`)}
export OTEL_EXPORTER_OTLP_METRICS_HEADERS=${shellQuoted(`Authorization=Bearer%20${key}`)}
export OTEL_EXPORTER_OTLP_METRICS_COMPRESSION=gzip
`,
  },
]);

const mqtt = withKey("write", ({ origin, key }) => [
  {
    title: "bridge.toml",
    code: `[api]
url = ${quoted(origin)}
key = ${quoted(key)}

[broker]
url = "mqtt://127.0.0.1:1883"
client_id = "tidewatch-bridge"

# plant/north/pump-7 becomes the source pump-7 with the dimension site = north.
[[topics]]
topic = "plant/{site}/{source}"
`,
  },
  { title: "Run it", code: "tidewatch bridge mqtt --config bridge.toml" },
]);

const grafana = withKey("read", ({ origin, bucket, key }) => [
  {
    title: "Provisioning: /etc/grafana/provisioning/datasources/tidewatch.yaml",
    code: `${elsewhere(origin)}# Bucket: ${commented(bucket)}
apiVersion: 1
datasources:
  - name: tidewatch
    type: prometheus
    access: proxy
    url: ${quoted(`${origin}/prometheus`)}
    jsonData:
      httpMethod: POST
      httpHeaderName1: X-API-Key
    secureJsonData:
      httpHeaderValue1: ${quoted(key)}
`,
  },
  {
    title: "By hand: a new data source of type Prometheus",
    code: `Prometheus server URL   ${origin}/prometheus
HTTP headers, Header    X-API-Key
HTTP headers, Value     ${key}
`,
  },
]);

export const AGENTS: Agent[] = [
  {
    id: "telegraf",
    label: "Telegraf",
    keyType: "write",
    text: "A measurement becomes a source, its tags become dimensions. Telegraf's inputs stay as they are; the two here are examples.",
    snippets: telegraf,
  },
  {
    id: "prometheus",
    label: "Prometheus",
    keyType: "write",
    text: "A metric becomes a source with the field value, its labels become dimensions. Remote write 1.0 and 2.0.",
    snippets: prometheus,
  },
  {
    id: "opentelemetry",
    label: "OpenTelemetry",
    keyType: "write",
    text: "A metric becomes a source, its attributes and those of service, host and Kubernetes become dimensions. Metrics only: no traces, no logs.",
    snippets: openTelemetry,
  },
  {
    id: "mqtt",
    label: "MQTT",
    keyType: "write",
    text: "The bridge reads topics of a broker. Levels of a topic become source and dimensions, numbers and JSON become fields.",
    snippets: mqtt,
  },
  {
    id: "grafana",
    label: "Grafana",
    keyType: "read",
    text: "Grafana asks by PromQL. The field usage of the source cpu is the metric cpu_usage; the field value has the source's name alone. Dimensions are labels.",
    snippets: grafana,
  },
];
