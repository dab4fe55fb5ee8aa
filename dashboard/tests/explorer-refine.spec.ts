/** What the explorer makes of points before it draws them: conditions, computed lines, and sources together. */
import { createSource, send, signUp, type Account, type SourceRef } from "./support/api";
import { expect, open, test, waitUntilSettled } from "./support/test";

const SCHEMA = { power: { type: "number", unit: "kW" }, flow: { type: "number" }, on: { type: "boolean" } };

/** Two pumps of one bucket, an hour of a point a minute: the first at 10 kW, the second at 30 kW. */
async function pumps(account: Account): Promise<[SourceRef, SourceRef]> {
  const first = await createSource(account, SCHEMA, { name: "North" });
  const second = await createSource(account, SCHEMA, { name: "South", bucketId: first.bucketId });
  const now = Date.now();
  for (const [place, source] of [first, second].entries()) {
    const points = Array.from({ length: 60 }, (_, minute) => ({
      at: now - (60 - minute) * 60_000,
      values: { power: place === 0 ? 10 : 30, flow: 5, on: minute % 2 === 0 },
    }));
    await send(account, source, points);
  }
  return [first, second];
}

const fieldsOf = (sources: SourceRef[]) =>
  sources.map(({ bucketId, sourceId }) => `f=${bucketId}.${sourceId}.power`).join("&");

test("points are filtered by their values, and the address keeps it", async ({ page, service }) => {
  const account = await signUp(service.url);
  const [first] = await pumps(account);
  await open(page, account, `#/explore?${fieldsOf([first])}&r=6h`);
  await expect(page.getByTestId("chart-points")).toHaveText("60 points");
  await page.getByRole("button", { name: "Filter and compute" }).click();
  await page.getByRole("button", { name: "Add a condition on a value" }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByText("Must be a number such as 5.5")).toBeVisible();
  await expect(page.getByLabel("Value", { exact: true })).toBeFocused();
  await page.getByLabel("Field", { exact: true }).selectOption("on");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByTestId("chart-points")).toHaveText("30 points");
  expect(decodeURIComponent(page.url())).toContain('where=["on","eq",true]');
  await page.reload();
  await waitUntilSettled(page);
  await expect(page.getByTestId("chart-points")).toHaveText("30 points");
  await expect(page.getByRole("button", { name: "Filter and compute (1)" })).toBeVisible();
  await page.getByRole("button", { name: "As curl" }).click();
  await expect(page.getByRole("dialog")).toContainText('"values":{"on":{"eq":true}}');
});

test("a line is computed of the fields of each source", async ({ page, service }) => {
  const account = await signUp(service.url);
  const sources = await pumps(account);
  await open(page, account, `#/explore?${fieldsOf(sources)}&r=6h`);
  await page.getByRole("button", { name: "Filter and compute" }).click();
  await page.getByRole("button", { name: "Add a computed line" }).click();
  await page.getByLabel("Name").fill("load");
  await page.getByLabel("Expression").fill("power / pressure");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByText("Must use number fields of the picked sources; pressure is none.")).toBeVisible();
  await page.getByLabel("Expression").fill("power / flow");
  await page.getByRole("button", { name: "Apply" }).click();
  await waitUntilSettled(page);
  const legend = page.locator(".legend");
  await expect(legend.getByRole("row", { name: /North · load/ })).toContainText("2");
  await expect(legend.getByRole("row", { name: /South · load/ })).toContainText("6");
  await expect(page.getByRole("table").last().getByRole("columnheader", { name: "load" })).toBeVisible();
  // Without it, its lines are gone too.
  await page.getByRole("button", { name: /Filter and compute/ }).click();
  await page.getByRole("button", { name: "Remove the line load" }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(legend.getByRole("row", { name: /load/ })).toHaveCount(0);
  await expect(page.getByText("no longer there")).toHaveCount(0);
});

test("several sources are one line, and become one panel", async ({ page, service }) => {
  const account = await signUp(service.url);
  const sources = await pumps(account);
  await open(page, account, `#/explore?${fieldsOf(sources)}&r=6h&by=hour`);
  await expect(page.locator(".legend tbody tr")).toHaveCount(2);
  await page.getByRole("button", { name: "Filter and compute" }).click();
  await page.getByLabel("Draw sources together").check();
  await page.getByRole("button", { name: "Apply" }).click();
  await waitUntilSettled(page);
  await expect(page.locator(".legend tbody tr")).toHaveCount(1);
  await expect(page.locator(".legend")).toContainText("2 sources · power");
  await expect(page.locator(".legend-value")).toHaveText("20 kW");
  await page.getByRole("button", { name: "Add to board" }).click();
  await page.getByLabel("Name of the board").fill("Pumps");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("link", { name: "Boards" }).click();
  await page.getByRole("link", { name: "Pumps", exact: true }).click();
  await expect(page.locator(".panel-legend li")).toHaveCount(1);
  await expect(page.locator(".panel-legend strong")).toContainText("20");
});
