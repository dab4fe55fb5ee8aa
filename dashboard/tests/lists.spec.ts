/** Search in long lists; on a phone, lists show the important columns without scrolling sideways. */
import { call, createWorld, pagesOf, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

const MANY = 60;

test("fleets: search, order and pages of sources and rules, and an Activity of bounded height", async ({
  page,
  service,
}) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const { bucketId, sourceId } = world;
  const evaluation = {
    kind: "threshold",
    intervalSeconds: 60,
    windowSeconds: 300,
    inputs: [{ key: "x", field: "vibration" }],
    parameters: { operator: "gt", value: 5 },
  };
  for (let number = 1; number <= MANY; number++) {
    const name = `Fan ${number}`;
    await call(account, "POST", `/api/buckets/${bucketId}/sources`, { name, schema: { rpm: { type: "number" } } });
    await call(account, "POST", "/api/alerts", {
      bucketId,
      dataSourceId: sourceId,
      name,
      naturalLanguageQuery: "vibration is above 5",
      evaluation,
    });
  }
  await open(page, account, `#/buckets/${bucketId}/sources`);
  for (const hash of [`#/buckets/${bucketId}/sources`, "#/rules", `#/buckets/${bucketId}/rules`]) {
    await visit(page, hash);
    const rows = page.locator("tbody tr");
    await expect(rows).toHaveCount(50);
    await page.getByRole("button", { name: "Next" }).click();
    await expect(rows).toHaveCount(MANY + 1 - 50);
    await page.getByLabel(/^Search/).fill("60 fan");
    await expect(rows).toHaveCount(1);
    await page.getByLabel(/^Search/).fill("");
    await page.getByLabel(/^Sort/).selectOption("by name");
    await expect(rows.nth(9)).toContainText("Fan 10");
  }
  await visit(page, `#/buckets/${bucketId}`);
  await expect(page.locator("tbody").nth(49)).toBeAttached();
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(1400);
  await page.getByLabel(/^Search/).fill("pump");
  await expect(page.locator("tbody")).toHaveCount(1);
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });

  test("no column lies outside the screen, and fingers meet what they press", async ({ page, service }) => {
    const account = await signUp(service.url);
    const world = await createWorld(account);
    await open(page, account);
    for (const [name, hash] of Object.entries(pagesOf(world, "vibration"))) {
      // The explorer has its own tests.
      if (name.startsWith("explorer")) continue;
      await visit(page, hash);
      const found = await page.evaluate(() => {
        const wide = [...document.querySelectorAll(".table-frame")].filter(
          (frame) => frame.scrollWidth > frame.clientWidth,
        );
        // A file is chosen by pressing the label.
        const pressed =
          "button, input:not([type=checkbox], [type=file]), label.button, select, summary, a.button, nav a, .check, .table-frame a";
        const low = [...document.querySelectorAll(pressed)].filter((element) => {
          const { width, height } = element.getBoundingClientRect();
          return width > 0 && height < 40;
        });
        return [...wide, ...low].map((element) => element.outerHTML.slice(0, 120));
      });
      expect(found, name).toEqual([]);
    }
    await visit(page, "#/rules");
    for (const label of ["State", "Timers", "Last fired"]) {
      const box = (await page.locator(`td[data-label="${label}"]`).first().boundingBox())!;
      expect(box.x + box.width, label).toBeLessThanOrEqual(390);
    }
  });
});

test("the API's own description is one link away", async ({ page, service }) => {
  const account = await signUp(service.url);
  await open(page, account);
  await page.getByRole("link", { name: "API reference" }).click();
  await expect(page).toHaveURL(/\/api\/docs$/);
  await expect(page.locator("h1")).toBeVisible();
});
