/** The service under test: the binary of TIDEWATCH_BIN on a free port with its own directory. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Service {
  /** Base URL of the page and the API. */
  url: string;
  stop: () => Promise<void>;
}

const START_DEADLINE_MS = 20_000;

/** Of all services under test, but for one that has none. */
export const OPERATOR_TOKEN = "operator-token-of-the-browser-tests";

export async function startService(
  plan: "Free" | "Enterprise" = "Enterprise",
  operatorToken: string | null = OPERATOR_TOKEN,
): Promise<Service> {
  const binary = process.env["TIDEWATCH_BIN"];
  if (binary === undefined) throw new Error("TIDEWATCH_BIN must name the server's binary");
  const dataDir = mkdtempSync(join(tmpdir(), "tidewatch-dashboard-"));
  const child = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--data-dir", dataDir], {
    env: {
      PATH: process.env["PATH"],
      TIDEWATCH_ACCOUNTS__DEFAULT_PLAN: plan,
      TIDEWATCH_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: "true",
      ...(operatorToken === null ? {} : { TIDEWATCH_OPERATOR__TOKEN: operatorToken }),
    },
  });
  return {
    url: await addressOf(child),
    stop: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Reads the server's address from its log. */
function addressOf(child: ChildProcess): Promise<string> {
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
