/** Ready-made commands and programs with the right ids and key in them. Pure: strings in, strings out. */
import type { FieldType, Schema } from "../api/sources";

/** What stands where a key belongs, until there is one. */
export const PLACEHOLDERS = { write: "YOUR-WRITE-KEY", read: "YOUR-READ-KEY" } as const;

/** A word for a POSIX shell, whatever it holds. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A POST with a JSON body, its key taken from the environment: keys do not belong into shell histories. */
export function curlPost(url: string, body: unknown): string {
  return [
    `curl -s ${shellQuoted(url)} \\`,
    `  -H "X-API-Key: $TIDEWATCH_KEY" -H 'Content-Type: application/json' \\`,
    `  -d ${shellQuoted(JSON.stringify(body))}`,
  ].join("\n");
}

const SAMPLES: Record<FieldType, unknown> = { number: 21.5, string: "ok", boolean: true };

/** Values that the schema takes; a few of them, as the snippet is to be read. */
export function sampleValues(schema: Schema): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema)
      .slice(0, 6)
      .map(([name, { type }]) => [name, SAMPLES[type]]),
  );
}

export interface Target {
  origin: string;
  bucketId: string;
  sourceId: string;
  schema: Schema;
  /** Null: the placeholder stands for it. */
  key: string | null;
}

interface Language {
  id: string;
  label: string;
  send: (target: Target) => string;
  /** Not for what only sends. */
  ask?: (target: Target) => string;
}

const keyOf = ({ key }: Target): string => key ?? PLACEHOLDERS.write;
const pointOf = ({ bucketId, sourceId, schema }: Target) => ({
  bucketId,
  dataSourceId: sourceId,
  values: sampleValues(schema),
});
const newestOf = ({ bucketId, sourceId }: Target) => ({
  bucketId,
  filters: { dataSourceIds: [sourceId] },
  sort: "desc",
  limit: 10,
});

/** JSON with spaces, as one writes it in a program; `null`, `true` and `false` in the words of the language. */
function literal(value: unknown, words: { true: string; object: [string, string] }): string {
  if (value === true) return words.true;
  if (Array.isArray(value)) return `[${value.map((one) => literal(one, words)).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one, words)}`);
  return `${words.object[0]}${members.join(", ")}${words.object[1]}`;
}

const JS = { true: "true", object: ["{ ", " }"] as [string, string] };
const PYTHON = { true: "True", object: ["{", "}"] as [string, string] };
const GO = { true: "true", object: ["map[string]any{", "}"] as [string, string] };

/** An object over several lines, a member on each. */
function lines(body: object, indent: string, words: typeof JS): string {
  const members = Object.entries(body).map(
    ([name, value]) => `${indent}${JSON.stringify(name)}: ${literal(value, words)},\n`,
  );
  return `${words.object[0].trim()}\n${members.join("")}`;
}

const curl = (path: string, body: (target: Target) => unknown) => (target: Target) =>
  `export TIDEWATCH_KEY=${shellQuoted(keyOf(target))}\n${curlPost(target.origin + path, body(target))}`;

const python = (target: Target, call: string) => `import json, urllib.request

BASE = ${JSON.stringify(target.origin)}
KEY = ${JSON.stringify(keyOf(target))}

def call(path, body):
    request = urllib.request.Request(BASE + path, json.dumps(body).encode(), {
        "X-API-Key": KEY, "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)

${call}`;

const node = (target: Target, call: string) => `// Node 18 or newer; save it as tidewatch.mjs.
const BASE = ${JSON.stringify(target.origin)};
const KEY = ${JSON.stringify(keyOf(target))};

async function call(path, body) {
  const response = await fetch(BASE + path, {
    method: "POST",
    headers: { "X-API-Key": KEY, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

${call}`;

const go = (target: Target, call: string) => `package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
)

const (
	base = ${JSON.stringify(target.origin)}
	key  = ${JSON.stringify(keyOf(target))}
)

func call(path string, body any) string {
	text, err := json.Marshal(body)
	if err != nil {
		log.Fatal(err)
	}
	request, err := http.NewRequest("POST", base+path, bytes.NewReader(text))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("X-API-Key", key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		log.Fatal(response.Status, " ", string(answer), err)
	}
	return string(answer)
}

func main() {
	fmt.Println(call(${call}))
}
`;

/** A board is another machine: the loopback address of this one leads it nowhere. */
export const isLoopback = (origin: string): boolean => /^https?:\/\/(localhost|127\.|\[::1\])/.test(origin);

const arduino = (target: Target) => `// An ESP32; ESP8266 boards have ESP8266WiFi.h and ESP8266HTTPClient.h instead.
#include <WiFi.h>
#include <HTTPClient.h>

const char* NETWORK = "your network";
const char* PASSWORD = "its password";
${isLoopback(target.origin) ? "// Put this computer's address in your network here, and let the server listen there.\n" : ""}const char* URL = ${JSON.stringify(`${target.origin}/api/data`)};
const char* KEY = ${JSON.stringify(keyOf(target))};

void setup() {
  Serial.begin(115200);
  WiFi.begin(NETWORK, PASSWORD);
  while (WiFi.status() != WL_CONNECTED) delay(500);
}

void loop() {
  // Put what you measure in the place of the values.
  String body = ${JSON.stringify(JSON.stringify(pointOf(target)))};
  HTTPClient http;
  http.begin(URL);
  http.addHeader("X-API-Key", KEY);
  http.addHeader("Content-Type", "application/json");
  int status = http.POST(body);
  if (status != 201) Serial.println(String(status) + " " + http.getString());
  http.end();
  delay(60000);
}
`;

export const LANGUAGES: Language[] = [
  { id: "curl", label: "curl", send: curl("/api/data", pointOf), ask: curl("/api/data/query", newestOf) },
  {
    id: "python",
    label: "Python",
    send: (target) => python(target, `print(call("/api/data", ${lines(pointOf(target), "    ", PYTHON)}}))\n`),
    ask: (target) =>
      python(
        target,
        `answer = call("/api/data/query", ${lines(newestOf(target), "    ", PYTHON)}})
for row in answer["data"]:
    print(row["timestamp"], row["values"])
`,
      ),
  },
  {
    id: "node",
    label: "Node",
    send: (target) => node(target, `console.log(await call("/api/data", ${lines(pointOf(target), "  ", JS)}}));\n`),
    ask: (target) =>
      node(
        target,
        `const answer = await call("/api/data/query", ${lines(newestOf(target), "  ", JS)}});
for (const row of answer.data) console.log(row.timestamp, row.values);
`,
      ),
  },
  {
    id: "go",
    label: "Go",
    send: (target) => go(target, `"/api/data", ${lines(pointOf(target), "\t\t", GO)}\t}`),
    ask: (target) => go(target, `"/api/data/query", ${goQuery(target)}`),
  },
  { id: "arduino", label: "Arduino", send: arduino },
];

/** Lists have a type in Go. */
const goQuery = (target: Target): string =>
  `${lines(newestOf(target), "\t\t", GO)}\t}`.replace(/\[("[^"]*")\]/, "[]string{$1}");

/** How the reference evaluator is run against this server. */
export const evaluateCommand = (origin: string): string =>
  `TIDEWATCH_KEY=svc_i_… tidewatch evaluate --url ${shellQuoted(origin)}`;
