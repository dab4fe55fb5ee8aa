/** A limited plan: the page shows the remaining quota. */
import { call, createWorld, signUp } from "./support/api";
import { startService } from "./support/service";
import { expect, open, test, visit } from "./support/test";

test("the Free plan says what is left of it", async ({ page }) => {
  const service = await startService("Free");
  try {
    const account = await signUp(service.url);
    const world = await createWorld(account);
    await open(page, account);
    await expect(page.getByRole("meter", { name: "API calls this month" })).toBeVisible();
    await expect(page.getByRole("meter", { name: "Buckets" })).toHaveAttribute("aria-valuetext", "1 of 3");
    await visit(page, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=15m&live=1`);
    // The page's own requests do not count: live updates work as on every plan.
    const value = { bucketId: world.bucketId, dataSourceId: world.sourceId, values: { vibration: 41.5 } };
    await call(account, "POST", "/api/data", value);
    await expect(page.locator(".legend-value")).toHaveText("41.5 mm/s");
    await visit(page, "#/buckets?new=1");
    await page.getByLabel("Name", { exact: true }).fill("Second");
    await page.getByLabel("Retention in days").fill("400");
    await page.getByRole("button", { name: "Create bucket" }).click();
    await expect(page.locator(".fault")).toContainText("30");
  } finally {
    await service.stop();
  }
});
