import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { curlPost, curlSend, pythonSend, sampleValues, shellQuoted } from "./snippets";

const HOSTILE = `it's "$(reboot)" \\ \`x\` <b>`;

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

test("the ids are the source's", () => {
  const target = { origin: "http://x", bucketId: "bbb", sourceId: "sss", schema: { on: { type: "boolean" as const } } };
  expect(curlSend(target)).toContain(`"bucketId":"bbb","dataSourceId":"sss","values":{"on":true}`);
  expect(pythonSend(target)).toContain(`"values": {"on": True}`);
});
