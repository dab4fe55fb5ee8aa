/** An open page learns what others have done, on every plan; and says when it cannot. */
import type { Service } from "./support/service";
import { startService } from "./support/service";
import { call, makeWorld, signUp } from "./support/api";
import { expect, open, test } from "./support/test";

/** Every open page must know by then. */
const KNOWN = { timeout: 15_000 };

test.describe("on the Free plan", () => {
  let service: Service;
  test.beforeAll(async () => {
    service = await startService("Free");
  });
  test.afterAll(() => service.stop());

  test("a rule that fires is seen on every open page, and in its title", async ({ context }) => {
    const account = await signUp(service.url);
    const world = await makeWorld(account);
    const key = world.integrationKey;
    const { alertRule } = await call<{ alertRule: { _id: string } }>(account, "POST", "/api/alerts", {
      bucketId: world.bucketId,
      dataSourceId: world.sourceId,
      name: "Second",
      naturalLanguageQuery: "vibration is above 5",
      evaluation: {
        kind: "threshold",
        intervalSeconds: 60,
        windowSeconds: 300,
        inputs: [{ key: "x", field: "vibration" }],
        parameters: { operator: "gt", value: 5 },
      },
    });
    const [list, one, overview] = [await context.newPage(), await context.newPage(), await context.newPage()];
    await open(list, account, "#/rules");
    await open(one, account, `#/rules/${alertRule._id}`);
    await open(overview, account);
    await expect(list).toHaveTitle("(1) firing · Alert rules · tidewatch");
    await expect(one.locator(".figures").first()).toContainText("armed");
    await call(account, "POST", `/api/evaluations/${alertRule._id}/verdict`, { outcome: "met", evidence: {} }, key);
    await expect(list.getByRole("row", { name: /Second/ })).toContainText("firing", KNOWN);
    await expect(list).toHaveTitle("(2) firing · Alert rules · tidewatch", KNOWN);
    await expect(one.locator(".figures").first()).toContainText("firing", KNOWN);
    await expect(one.getByRole("region", { name: "History" }).first()).toContainText("fired", KNOWN);
    await expect(overview.getByRole("link", { name: "Alert rules 2 firing" })).toBeVisible(KNOWN);
    await expect(overview.getByText("Triggers of the last 24 h").locator("..")).toContainText("2", KNOWN);
  });
});

test("while the server does not answer the page says since when, and comes back by itself", async ({ page, service }) => {
  const account = await signUp(service.url);
  await open(page, account, "#/buckets");
  await page.route("**/api/**", (route) => route.abort());
  await expect(page.getByText(/Not up to date since \d\d:\d\d\./)).toBeVisible(KNOWN);
  await page.evaluate(() => (location.hash = "#/webhooks"));
  await expect(page.getByRole("heading", { name: "The webhooks could not be loaded" })).toBeVisible();
  await page.unroute("**/api/**");
  await expect(page.getByText("No webhooks yet")).toBeVisible(KNOWN);
  await expect(page.getByText(/Not up to date/)).toHaveCount(0, KNOWN);
});

test("counts follow what is made, here and elsewhere", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await makeWorld(account);
  await open(page, account, `#/buckets/${world.bucketId}/keys`);
  const keys = page.locator(".figure", { hasText: "Keys" });
  await expect(keys).toContainText("1");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("second");
  await page.getByRole("button", { name: "Make key" }).click();
  await page.getByRole("button", { name: "I have copied it" }).click();
  await expect(keys).toContainText("2", { timeout: 3000 });
  await call(account, "POST", `/api/buckets/${world.bucketId}/keys`, { name: "third", type: "read" });
  await expect(keys).toContainText("3", KNOWN);
  await expect(page.getByRole("row", { name: /third/ })).toBeVisible(KNOWN);
});
