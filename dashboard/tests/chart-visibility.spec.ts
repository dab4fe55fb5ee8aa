/** A chart with points in its range is never blank. */
import { createSource, send, signUp, type Account, type SourceRef } from "./support/api";
import { measurePixels } from "./support/pixels";
import { expect, open, test } from "./support/test";

const MINUTE = 60_000;
const hashOf = ({ bucketId, sourceId }: SourceRef, rest: string) => `#/explore?f=${bucketId}.${sourceId}.v&${rest}`;

let account: Account;
test.beforeAll(async ({ service }) => {
  account = await signUp(service.url);
});

test("first points are seen at once: one, some within a pixel, and one alone between gaps", async ({ page }) => {
  const single = await createSource(account, { v: { type: "number" } });
  const now = Date.now();
  await send(account, single, [{ at: now - 60 * MINUTE, values: { v: 21.5 } }]);
  await open(page, account, hashOf(single, "r=24h"));
  await expect(page.getByTestId("chart-points")).toHaveText("1 point");
  await expect.poll(async () => (await measurePixels(page)).pixels).toBeGreaterThan(8);

  const burst = await createSource(account, { v: { type: "number" } });
  const twenty = Array.from({ length: 20 }, (_, n) => ({ at: now - 60 * MINUTE + n * 2000, values: { v: 20 } }));
  await send(account, burst, twenty);
  await open(page, account, hashOf(burst, "r=24h"));
  await expect.poll(async () => (await measurePixels(page)).pixels).toBeGreaterThan(8);

  // Two dense series of points with a single point between them.
  const alone = await createSource(account, { v: { type: "number" } });
  const run = (from: number) => Array.from({ length: 300 }, (_, n) => ({ at: from + n * 10_000, values: { v: 1 } }));
  const middle = { at: now - 12 * 60 * MINUTE, values: { v: 9 } };
  await send(account, alone, [...run(now - 20 * 60 * MINUTE), middle, ...run(now - 4 * 60 * MINUTE)]);
  await open(page, account, hashOf(alone, "r=24h"));
  await expect.poll(async () => (await measurePixels(page)).upper).toBeGreaterThan(8);
});

test("groups finer than what a source sends are drawn", async ({ page }) => {
  const rare = await createSource(account, { v: { type: "number" } });
  const now = Date.now();
  const points = Array.from({ length: 348 }, (_, n) => ({ at: now - (n + 1) * 120 * MINUTE, values: { v: n % 9 } }));
  await send(account, rare, points);
  for (const view of ["r=30d&agg=max&by=hour", "r=30d&by=hour"]) {
    await open(page, account, hashOf(rare, view));
    await expect(page.getByTestId("chart-points")).toContainText("348 values");
    // A line across the range, not only at its two ends.
    await expect.poll(async () => (await measurePixels(page)).pixels).toBeGreaterThan(2000);
  }
});
