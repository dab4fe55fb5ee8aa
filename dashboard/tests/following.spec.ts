/** An open page shows changes made by other clients, on every plan, and shows when it cannot. */
import type { Service } from "./support/service";
import { startService } from "./support/service";
import { call, createWorld, signUp } from "./support/api";
import { expect, open, test } from "./support/test";

/** The time by which every open page shows a change. The page's clock is advanced, so that no test waits for it. */
const KNOWN_MS = 10_000;

test.describe("on the Free plan", () => {
  let service: Service;
  test.beforeAll(async () => {
    service = await startService("Free");
  });
  test.afterAll(() => service.stop());

  test("a rule that fires is seen on every open page, and in its title", async ({ context }) => {
    const account = await signUp(service.url);
    const world = await createWorld(account);
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
    for (const page of [list, one, overview]) await page.clock.install();
    await open(list, account, "#/rules");
    await open(one, account, `#/rules/${alertRule._id}`);
    await open(overview, account);
    await expect(list).toHaveTitle("(1) firing · Alert rules · tidewatch");
    await expect(one.locator(".figures").first()).toContainText("armed");
    await call(account, "POST", `/api/evaluations/${alertRule._id}/verdict`, { outcome: "met", evidence: {} }, key);
    for (const page of [list, one, overview]) await page.clock.runFor(KNOWN_MS);
    await expect(list.getByRole("row", { name: /Second/ })).toContainText("firing");
    await expect(list).toHaveTitle("(2) firing · Alert rules · tidewatch");
    await expect(one.locator(".figures").first()).toContainText("firing");
    await expect(one.getByRole("region", { name: "History" }).first()).toContainText("fired");
    await expect(overview.getByRole("link", { name: "Alert rules 2 firing" })).toBeVisible();
    await expect(overview.getByText("Triggers of the last 24 h").locator("..")).toContainText("2");
  });
});

test("while the server does not answer the page says since when, and comes back by itself", async ({
  page,
  service,
}) => {
  const account = await signUp(service.url);
  await page.clock.install();
  await open(page, account, "#/buckets");
  await page.route("**/api/**", (route) => route.abort());
  await page.clock.runFor(KNOWN_MS);
  await expect(page.getByText(/Not up to date since (\d{4}-\d\d-\d\d )?\d\d:\d\d\./)).toBeVisible();
  await page.evaluate(() => (location.hash = "#/webhooks"));
  await expect(page.getByRole("heading", { name: "The webhooks could not be loaded" })).toBeVisible();
  await page.unroute("**/api/**");
  await page.clock.runFor(KNOWN_MS);
  await expect(page.getByText("No webhooks yet")).toBeVisible();
  await expect(page.getByText(/Not up to date/)).toHaveCount(0);
});

test("counts follow what is made, here and elsewhere", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await page.clock.install();
  await open(page, account, `#/buckets/${world.bucketId}/keys`);
  const keys = page.locator(".figure", { hasText: "Keys" });
  await expect(keys).toContainText("1");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("second");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "I have copied it" }).click();
  await expect(keys).toContainText("2");
  await call(account, "POST", `/api/buckets/${world.bucketId}/keys`, { name: "third", type: "read" });
  await page.clock.runFor(KNOWN_MS);
  await expect(keys).toContainText("3");
  await expect(page.getByRole("row", { name: /third/ })).toBeVisible();
});

test("a server that is slower than the page asks is waited for, and one that hangs is not", async ({
  page,
  service,
}) => {
  const account = await signUp(service.url);
  const { bucket } = await call<{ bucket: { _id: string } }>(account, "POST", "/api/buckets", { name: "Plant" });
  const bucketId = bucket._id;
  const { dataSource } = await call<{ dataSource: { _id: string } }>(
    account,
    "POST",
    `/api/buckets/${bucketId}/sources`,
    {
      name: "Boiler",
      schema: { t: { type: "number" } },
    },
  );
  await page.clock.install();
  await open(page, account, `#/buckets/${bucketId}/sources/${dataSource._id}`);
  const pending: (() => void)[] = [];
  const sourceUrl = `**/api/buckets/${bucketId}/sources/${dataSource._id}`;
  await page.route(sourceUrl, async (route) => {
    await new Promise<void>((resolve) => pending.push(resolve));
    // The page has cancelled the request by the second half of this test.
    await route.continue().catch(() => undefined);
  });
  await call(account, "POST", "/api/data", { bucketId, dataSourceId: dataSource._id, values: { t: 1 } });
  // Requested every two seconds, answered after twenty.
  await page.clock.runFor(2000);
  await expect.poll(() => pending.length).toBe(1);
  await page.clock.runFor(18_000);
  pending[0]!();
  await expect(page.getByText("The first point is in.")).toBeVisible();
  expect(pending).toHaveLength(1);
  // A missing answer becomes an error that keeps the displayed data and is retried.
  await page.goto("about:blank");
  pending.length = 0;
  await page.goto(`${account.url}/#/buckets/${bucketId}/sources/${dataSource._id}`);
  await expect.poll(() => pending.length).toBe(1);
  await page.clock.runFor(36_000);
  await expect(page.getByText("The server did not answer within 35 seconds.")).toBeVisible();
  await page.clock.runFor(6000);
  await expect.poll(() => pending.length).toBe(2);
  pending.forEach((answer) => answer());
  await expect(page.getByRole("heading", { level: 1, name: "Boiler" })).toBeVisible();
});
