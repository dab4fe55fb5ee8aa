/** A source that has stopped sending is marked as silent. */
import { call, createWorld, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

test("a source that has fallen silent says since when, and stands first", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const { bucketId } = world;
  const { dataSource } = await call<{ dataSource: { _id: string } }>(
    account,
    "POST",
    `/api/buckets/${bucketId}/sources`,
    {
      name: "Machine",
      schema: { temperature: { type: "number" } },
    },
  );
  const last = Date.now() - 36 * 60_000;
  const dataPoints = Array.from({ length: 10 }, (_, index) => ({
    dataSourceId: dataSource._id,
    timestamp: new Date(last - index * 300_000).toISOString(),
    values: { temperature: 20 },
  }));
  await call(account, "POST", "/api/data/batch", { bucketId, dataPoints });
  const since = new RegExp(`silent since (\\d{4}-\\d\\d-\\d\\d )?${new Date(last).toISOString().slice(11, 16)}`);
  const rows = page.getByRole("region", { name: "Sources" }).first().getByRole("row");
  await page.clock.install();
  await open(page, account);
  await expect(page.getByText("1 source silent.")).toBeVisible();
  await expect(rows.nth(1)).toContainText("Machine");
  await expect(rows.nth(1)).toContainText(since);
  await expect(rows.nth(2)).toContainText("active");
  await visit(page, `#/buckets/${bucketId}/sources`);
  await expect(rows.nth(1)).toContainText("Machine");
  await expect(rows.nth(1)).toContainText(since);
  await visit(page, `#/buckets/${bucketId}/sources/${dataSource._id}`);
  await expect(page.locator(".figure", { hasText: "Status" })).toContainText(since);
  // The mark is shown and removed without a reload.
  await call(account, "POST", "/api/data", { bucketId, dataSourceId: dataSource._id, values: { temperature: 21 } });
  await page.clock.runFor(10_000);
  await expect(page.locator(".figure", { hasText: "Status" })).toContainText("active");
});
