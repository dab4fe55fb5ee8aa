/** "Newest values" are the values of the newest points in every view. */
import { call, createSource, send, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

const SECOND = 1000;

test("a grouped view names the newest point of each line and its time, and live moves it", async ({
  page,
  service,
}) => {
  const account = await signUp(service.url);
  const quick = await createSource(account, { v: { type: "number", unit: "bar" } }, { name: "Quick" });
  const slow = await createSource(account, { v: { type: "number" } }, { name: "Slow", bucketId: quick.bucketId });
  const now = Math.floor(Date.now() / SECOND) * SECOND;
  await send(
    account,
    quick,
    Array.from({ length: 400 }, (_, n) => ({ at: now - (400 - n) * SECOND, values: { v: n === 399 ? 56.4 : 10 } })),
  );
  // Older than the latest fifty points of both sources.
  await send(account, slow, [{ at: now - 7000 * SECOND, values: { v: 7.25 } }]);
  const fields = [quick, slow].map(({ bucketId, sourceId }) => `f=${bucketId}.${sourceId}.v`).join("&");
  await open(page, account, `#/explore?${fields}&r=6h&by=hour&live=1`);
  const clock = (at: number) => new Date(at).toISOString().slice(0, 19).replace("T", " ");
  const lines = page.locator(".legend tbody tr");
  await expect(lines.nth(0)).toContainText("56.4 bar");
  await expect(lines.nth(0)).toContainText(clock(now - SECOND));
  await expect(lines.nth(1)).toContainText("7.25");
  await expect(lines.nth(1)).toContainText(clock(now - 7000 * SECOND));
  await visit(page, `#/explore?${fields}&r=6h&by=day&agg=sum`);
  // All points of the day: fewer if it began minutes ago, and the newest alone in its first second.
  const day = new Date(now - SECOND).toISOString().slice(0, 10);
  const others = Math.min(400, (now - Date.parse(day)) / SECOND) - 1;
  await expect(lines.nth(0).locator(".legend-value")).toHaveText(`${Number((56.4 + others * 10).toFixed(1))} bar`);
  await expect(lines.nth(0).locator(".legend-time")).toHaveText(day);
  await visit(page, `#/explore?${fields}&r=6h&by=hour&live=1`);
  await call(account, "POST", "/api/data", {
    bucketId: quick.bucketId,
    dataSourceId: quick.sourceId,
    values: { v: 77.5 },
  });
  await expect(lines.nth(0)).toContainText("77.5 bar");
  await expect(lines.nth(1)).toContainText("7.25");
});
