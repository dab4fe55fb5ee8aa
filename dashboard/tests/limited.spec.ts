/** A limited plan: what it has left is shown, and live keeps to its share. */
import { makeWorld, signUp } from "./support/api";
import { startService } from "./support/service";
import { expect, open, test, visit } from "./support/test";

test("the Free plan is spared, and says so", async ({ page }) => {
  const service = await startService("Free");
  try {
    const account = await signUp(service.url);
    const world = await makeWorld(account);
    await open(page, account);
    await expect(page.getByRole("meter", { name: "API calls this month" })).toBeVisible();
    await expect(page.getByRole("meter", { name: "Buckets" })).toHaveAttribute("aria-valuetext", "1 of 3");
    await visit(page, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=15m&live=1`);
    await expect(
      page.getByText("Asks every 36 s: an hour of live costs 100 of the month's 10,000 calls."),
    ).toBeVisible();
    const queries: string[] = [];
    page.on("request", (request) => queries.push(request.url()));
    // Longer than the second that an unlimited plan waits.
    await expect.poll(() => page.evaluate(() => performance.now()), { timeout: 10_000 }).toBeGreaterThan(4000);
    expect(queries).toEqual([]);
    await visit(page, "#/buckets?new=1");
    await page.getByLabel("Name", { exact: true }).fill("Second");
    await page.getByLabel("Retention in days").fill("400");
    await page.getByRole("button", { name: "Create bucket" }).click();
    await expect(page.locator(".fault")).toContainText("30");
  } finally {
    await service.stop();
  }
});
