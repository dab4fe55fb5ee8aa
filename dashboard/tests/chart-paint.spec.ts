/** A chart of many lines is painted once for each answer, and not before the answer has arrived. */
import { createSource, send, signUp } from "./support/api";
import { expect, open, waitUntilSettled, test } from "./support/test";

test("another range is drawn once, when its answer is here", async ({ page, service }) => {
  const account = await signUp(service.url);
  const source = await createSource(account, { v: { type: "number" } });
  const now = Date.now();
  await send(
    account,
    source,
    Array.from({ length: 3000 }, (_, n) => ({ at: now - n * 60_000, values: { v: n % 9 } })),
  );
  await open(page, account, `#/explore?f=${source.bucketId}.${source.sourceId}.v&r=24h`);
  // Each drawing begins by clearing the canvas.
  await page.evaluate(() => {
    const counted = window as unknown as { drawings: number };
    counted.drawings = 0;
    const clearRect = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...area) {
      counted.drawings++;
      clearRect.apply(this, area);
    };
  });
  const drawings = () => page.evaluate(() => (window as unknown as { drawings: number }).drawings);
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route("**/api/data/query", async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole("button", { name: "30d: the last 30 days" }).click();
  await expect(page.getByText("Loading the points…")).toBeVisible();
  expect(await drawings()).toBe(0);
  release();
  await waitUntilSettled(page);
  await expect(page.locator(".chart-note")).toContainText("over 30 d");
  await expect.poll(drawings).toBe(1);
});
