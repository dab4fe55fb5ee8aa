/**
 * The service under test: the binary of TIDEWATCH_BIN on a free port with a directory of its own, and before it, while
 * the binary does not serve the page itself, a proxy that serves `dist` as the server will.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { CONTENT_SECURITY_POLICY } from "../../vite.config";

export interface Service {
  /** Where the page and the API are. */
  url: string;
  stop: () => Promise<void>;
}

const START_DEADLINE_MS = 20_000;

export async function startService(plan: "Free" | "Enterprise" = "Enterprise"): Promise<Service> {
  const binary = process.env["TIDEWATCH_BIN"];
  if (binary === undefined) throw new Error("TIDEWATCH_BIN must name the server's binary");
  const dataDir = mkdtempSync(join(tmpdir(), "tidewatch-dashboard-"));
  const child = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--data-dir", dataDir], {
    env: {
      PATH: process.env["PATH"],
      TIDEWATCH_ACCOUNTS__DEFAULT_PLAN: plan,
      TIDEWATCH_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: "true",
    },
  });
  const api = await listeningAt(child);
  const proxy =
    process.env["TIDEWATCH_DIST"] === undefined ? null : await serveDist(process.env["TIDEWATCH_DIST"], api);
  return {
    url: proxy?.url ?? api,
    stop: async () => {
      proxy?.server.close();
      proxy?.server.closeAllConnections();
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The address of the log line that says where it listens. */
function listeningAt(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let log = "";
    const timer = setTimeout(() => reject(new Error(`the server did not start:\n${log}`)), START_DEADLINE_MS);
    const read = (chunk: Buffer) => {
      log += chunk.toString();
      const found = /listening on (http:\/\/[\d.:]+)/.exec(log);
      if (found?.[1] === undefined) return;
      clearTimeout(timer);
      resolve(found[1]);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${log}`)));
  });
}

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

/** `dist` at `/` and `/assets/*` under the server's policy; everything else goes to the binary. */
async function serveDist(dist: string, api: string): Promise<{ url: string; server: Server }> {
  const target = new URL(api);
  const server = createServer((incoming, outgoing) => {
    const path = new URL(incoming.url ?? "/", "http://dashboard").pathname;
    if (path === "/" || path.startsWith("/assets/"))
      sendFile(join(dist, path === "/" ? "index.html" : normalize(path)), outgoing);
    else pass(incoming, outgoing, target);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

function sendFile(path: string, outgoing: ServerResponse): void {
  try {
    const body = readFileSync(path);
    outgoing.writeHead(200, {
      "Content-Type": TYPES[extname(path)] ?? "application/octet-stream",
      "Content-Security-Policy": CONTENT_SECURITY_POLICY,
      "X-Content-Type-Options": "nosniff",
    });
    outgoing.end(body);
  } catch {
    outgoing.writeHead(404).end();
  }
}

function pass(incoming: IncomingMessage, outgoing: ServerResponse, target: URL): void {
  const onward = request(
    {
      host: target.hostname,
      port: target.port,
      path: incoming.url,
      method: incoming.method,
      headers: incoming.headers,
    },
    (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    },
  );
  onward.on("error", () => outgoing.destroy());
  incoming.pipe(onward);
}
