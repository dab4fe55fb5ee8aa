/** A source with dimensions. */
import { createSource, send, type Account, type SourceRef } from "./api";

const SCHEMA = { usage: { type: "number", unit: "%" }, idle: { type: "number", unit: "%" }, up: { type: "boolean" } };
const MINUTES = 60;

/** Usage of `web-0` … over the last hour, a point a minute and core; the higher the number, the higher the usage. */
export async function cores(account: Account, hosts = 2, cpus = 2): Promise<SourceRef> {
  const source = await createSource(account, SCHEMA, { name: "cpu", dimensions: ["host", "cpu"] });
  const now = Date.now();
  const points = Array.from({ length: hosts * cpus }, (_, n) => [Math.floor(n / cpus), n % cpus] as const).flatMap(
    ([host, cpu]) =>
      Array.from({ length: MINUTES }, (_, minute) => ({
        at: now - (MINUTES - minute) * 60_000,
        values: { usage: 10 * host + cpu, idle: 90 - 10 * host - cpu, up: true },
        metadata: { host: `web-${host}`, cpu: String(cpu), build: "1.2" },
      })),
  );
  await send(account, source, points);
  return source;
}
