/** Times in a zone that is chosen by name. */
import { createWorld, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

test("times and days go by the zone that was chosen", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, "#/account");
  await page.getByLabel("Shown in", { exact: true }).selectOption("Asia/Tokyo");
  const named = page.getByRole("button", { name: "Tokyo" });
  await expect(named).toHaveAttribute("aria-pressed", "true");
  const zones: unknown[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/api/data/query"))
      zones.push((request.postDataJSON() as { timezone?: string }).timezone);
  });
  await visit(page, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=30d&by=day`);
  expect(zones).toContain("Asia/Tokyo");
  await expect(page.getByRole("columnheader", { name: "Time (UTC+09:00)" })).toBeVisible();
  // A typed time is read by the same clock.
  await page.getByRole("button", { name: "from–to" }).click();
  await page.getByRole("textbox", { name: /^From/ }).fill("2026-01-31 09:00");
  await page.getByRole("textbox", { name: /^To/ }).fill("2026-01-31 10:00");
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await expect.poll(() => page.url()).toContain("from=2026-01-31T00%3A00%3A00.000Z");
  await page.getByRole("button", { name: "UTC", exact: true }).click();
  await page.reload();
  await expect(page.getByRole("button", { name: "UTC", exact: true })).toHaveAttribute("aria-pressed", "true");
  await named.click();
  await expect(named).toHaveAttribute("aria-pressed", "true");
});
