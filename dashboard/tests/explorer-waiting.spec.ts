/** A server that is slow or unreachable: the page shows it, stops waiting, and resumes by itself where possible. */
import { call, createWorld, signUp } from "./support/api";
import { expect, logInAs, open, test } from "./support/test";

const QUERY = "**/api/data/query";

test("a slow answer has a word, an end, and another try", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await page.clock.install();
  // The server accepts the request and does not answer.
  await page.route(QUERY, () => undefined);
  await logInAs(page, account);
  await page.goto(`${account.url}/#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h`);
  await expect(page.getByText("Loading the points…")).toBeVisible();
  await page.clock.fastForward(31_000);
  await expect(page.getByRole("alert")).toContainText("The server did not answer within 30 seconds.");
  await expect(page.getByText("Loading the points…")).toHaveCount(0);
  await page.unroute(QUERY);
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByTestId("chart-points")).toHaveText("120 points");
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("a live view that cannot follow says so, and follows again by itself", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await page.clock.install();
  await open(page, account, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h&live=1`);
  await expect(page.getByText("· following")).toBeVisible();
  await page.route(QUERY, (route) => route.abort());
  await expect(page.getByText("not following: The server did not answer")).toBeVisible();
  await expect(page.getByText("· following")).toHaveCount(0);
  await page.unroute(QUERY);
  const value = { bucketId: world.bucketId, dataSourceId: world.sourceId, values: { vibration: 77.5 } };
  await call(account, "POST", "/api/data", value);
  await page.clock.fastForward(5_000);
  await expect(page.locator(".legend-value")).toHaveText("77.5 mm/s");
  await expect(page.getByText("· following")).toBeVisible();
  await expect(page.getByText("not following")).toHaveCount(0);
});
