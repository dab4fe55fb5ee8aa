import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { AGENTS } from "./agent-snippets";
import { PLACEHOLDERS } from "./snippets";

const HOSTILE = `it's "$(reboot)" \\ {x} #\nkey: y`;
const target = { origin: "http://10.0.0.5:8080", bucket: HOSTILE, key: "svc_w_1" };
const codeOf = (id: string, at = 0) => AGENTS.find((agent) => agent.id === id)!.snippets(target)[at]!.code;

/** As Python's own reader of TOML understands it. */
function toml(text: string): unknown {
  const program = "import json, sys, tomllib; print(json.dumps(tomllib.loads(sys.stdin.read())))";
  return JSON.parse(execFileSync("python3", ["-c", program], { input: text }).toString());
}

test("every agent has the address and the key in it, or says where the key goes", () => {
  for (const { keyType, snippets } of AGENTS) {
    const all = (key: string | null) => snippets({ ...target, key }).map(({ code }) => code).join("\n");
    expect(all("svc_w_1")).toContain(target.origin);
    expect(all("svc_w_1")).toContain("svc_w_1");
    expect(all(null)).toContain(PLACEHOLDERS[keyType]);
  }
});

test("Telegraf reads its output, whatever the bucket is called", () => {
  const { outputs } = toml(codeOf("telegraf")) as { outputs: object };
  expect(outputs).toEqual({
    influxdb_v2: [{ urls: [target.origin], token: "svc_w_1", organization: "tidewatch", bucket: HOSTILE }],
  });
});

test("the bridge reads its file", () => {
  expect(toml(codeOf("mqtt"))).toEqual({
    api: { url: target.origin, key: "svc_w_1" },
    broker: { url: "mqtt://127.0.0.1:1883", client_id: "tidewatch-bridge" },
    topics: [{ topic: "plant/{site}/{source}" }],
  });
});

test("the environment of an SDK names the route and the key, its space encoded", () => {
  const script = `${codeOf("opentelemetry", 1)}printf '%s\\n' "$OTEL_EXPORTER_OTLP_METRICS_ENDPOINT" "$OTEL_EXPORTER_OTLP_METRICS_HEADERS"`;
  expect(execFileSync("sh", ["-c", script]).toString()).toBe(
    "http://10.0.0.5:8080/v1/metrics\nAuthorization=Bearer%20svc_w_1\n",
  );
});

test("a bucket's name stays within its comment", () => {
  const lines = codeOf("grafana").split("\n");
  expect(lines[0]).toBe(`# Bucket: it's "$(reboot)" \\ {x} # key: y`);
  expect(lines[1]).toBe("apiVersion: 1");
});

test("who runs an agent elsewhere is told that a loopback address leads nowhere", () => {
  for (const { id, snippets } of AGENTS.filter((agent) => agent.id !== "mqtt")) {
    const [here] = snippets({ ...target, origin: "http://127.0.0.1:8080" });
    expect(here!.code, id).toContain("On another machine");
    expect(codeOf(id), id).not.toContain("On another machine");
  }
});
