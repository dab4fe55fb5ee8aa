import { execFile, execFileSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LANGUAGES, PLACEHOLDERS, curlPost, sampleValues, shellQuoted, type Target } from "./snippets";

const HOSTILE = `it's "$(reboot)" \\ \`x\` <b>`;
const run = promisify(execFile);

/** Keeps what it is sent. */
const received: { url: string; key: string; body: unknown }[] = [];
let server: Server;
let target: Target;

beforeAll(async () => {
  server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      received.push({ url: request.url!, key: String(request.headers["x-api-key"]), body: JSON.parse(text) });
      response.end(JSON.stringify({ data: [{ timestamp: "now", values: { t: 1 } }] }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const schema = { [HOSTILE]: { type: "number" }, on: { type: "boolean" } } as const;
  target = { origin, bucketId: "bbb", sourceId: "sss", schema, key: "svc_w_1" };
});
afterAll(() => server.close());

test("a shell reads back what was quoted", () => {
  expect(execFileSync("sh", ["-c", `printf %s ${shellQuoted(HOSTILE)}`]).toString()).toBe(HOSTILE);
});

test("the body of a curl command reaches curl unchanged", () => {
  const body = { values: { [HOSTILE]: 1 } };
  const command = curlPost("http://x/", body).replace(/^curl/, `printf '%s\\0'`);
  const words = execFileSync("sh", ["-c", command]).toString().split("\0");
  expect(words).toContain(JSON.stringify(body));
});

test("samples fit the schema", () => {
  expect(sampleValues({ a: { type: "number" }, b: { type: "string" }, c: { type: "boolean" } })).toEqual({
    a: 21.5,
    b: "ok",
    c: true,
  });
});

const PROGRAMS: Record<string, [string, string[]]> = {
  curl: ["sh", ["-c"]],
  python: ["python3", ["-c"]],
  node: [process.execPath, ["--input-type=module", "-e"]],
};

test.each(Object.keys(PROGRAMS))("as %s what is copied runs, and sends what it should", async (id) => {
  const [program, options] = PROGRAMS[id]!;
  const language = LANGUAGES.find((one) => one.id === id)!;
  received.length = 0;
  await run(program, [...options, language.send(target)]);
  const { stdout } = await run(program, [...options, language.ask!(target)]);
  expect(stdout).toContain("now");
  expect(received).toEqual([
    {
      url: "/api/data",
      key: "svc_w_1",
      body: { bucketId: "bbb", dataSourceId: "sss", values: { [HOSTILE]: 21.5, on: true } },
    },
    {
      url: "/api/data/query",
      key: "svc_w_1",
      body: { bucketId: "bbb", filters: { dataSourceIds: ["sss"] }, sort: "desc", limit: 10 },
    },
  ]);
});

test("every language has the ids, the address and the key in it, or says where the key goes", () => {
  for (const { send } of LANGUAGES) {
    for (const part of ["bbb", "sss", target.origin, "svc_w_1"]) expect(send(target)).toContain(part);
    expect(send({ ...target, key: null })).toContain(PLACEHOLDERS.write);
  }
  expect(LANGUAGES.find(({ id }) => id === "go")!.ask!(target)).toContain(
    `"filters": map[string]any{"dataSourceIds": []string{"sss"}},`,
  );
});
