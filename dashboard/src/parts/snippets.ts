/** Ready-made commands and programs with the right ids in them. Pure: strings in, strings out. */
import type { FieldType, Schema } from "../api/sources";

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

interface Target {
  origin: string;
  bucketId: string;
  sourceId: string;
  schema: Schema;
}

export const curlSend = ({ origin, bucketId, sourceId, schema }: Target): string =>
  curlPost(`${origin}/api/data`, { bucketId, dataSourceId: sourceId, values: sampleValues(schema) });

export const curlQuery = ({ origin, bucketId, sourceId }: Target): string =>
  curlPost(`${origin}/api/data/query`, { bucketId, filters: { dataSourceIds: [sourceId] }, sort: "desc", limit: 10 });

const pythonDict = (values: Record<string, unknown>): string =>
  `{${Object.entries(values)
    .map(([name, value]) => `${JSON.stringify(name)}: ${value === true ? "True" : JSON.stringify(value)}`)
    .join(", ")}}`;

const PYTHON_CALL = `import json, os, urllib.request

def call(path, body):
    request = urllib.request.Request(BASE + path, json.dumps(body).encode(), {
        "X-API-Key": os.environ["TIDEWATCH_KEY"], "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)
`;

export const pythonSend = ({ origin, bucketId, sourceId, schema }: Target): string => `${PYTHON_CALL}
BASE = ${JSON.stringify(origin)}
call("/api/data", {
    "bucketId": "${bucketId}",
    "dataSourceId": "${sourceId}",
    "values": ${pythonDict(sampleValues(schema))},
})
`;

export const pythonQuery = ({ origin, bucketId, sourceId }: Target): string => `${PYTHON_CALL}
BASE = ${JSON.stringify(origin)}
answer = call("/api/data/query", {
    "bucketId": "${bucketId}",
    "filters": {"dataSourceIds": ["${sourceId}"]},
    "sort": "desc", "limit": 10,
})
for row in answer["data"]:
    print(row["timestamp"], row["values"])
`;

/** How the reference evaluator is run against this server. */
export const evaluateCommand = (origin: string): string =>
  `TIDEWATCH_KEY=svc_i_… tidewatch evaluate --url ${shellQuoted(origin)}`;
