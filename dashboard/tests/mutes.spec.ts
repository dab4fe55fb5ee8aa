/** Silences on the page of rules: created, in force, and ended. */
import { call, createWorld, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

interface Listed {
  silences: { alertIds: string[] | null; bucketId: string | null; reason: string; until: string }[];
}

test("rules are silenced for a while, and the silence is ended", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, "#/rules");
  const section = page.getByRole("region", { name: "Silences" });
  await expect(section).toContainText("No rule is silenced");
  await section.getByRole("button", { name: "New silence" }).click();
  const create = page.getByRole("button", { name: "Create silence" });
  // A single rule is meant; without any, the form says what is missing.
  await page.getByLabel("Pump 1 shakes").uncheck();
  await page.getByLabel("Reason").fill("bearing is being replaced");
  await create.click();
  await expect(page.getByText("Choose at least one rule.")).toBeVisible();
  await expect(page.getByLabel("Pump 1 shakes")).toBeFocused();
  await page.getByLabel("Pump 1 shakes").check();
  await page.getByLabel("Until").fill("soon");
  await expect(page.getByText("Must be a time such as now+2h")).toBeVisible();
  await create.click();
  await expect(page.getByLabel("Until")).toBeFocused();
  await page.getByLabel("Until").fill("now-1h");
  await create.click();
  await expect(page.getByText("Must be in the future")).toBeVisible();
  await page.getByLabel("Until").fill("now+2h");
  await create.click();
  const row = section.getByRole("row", { name: /bearing is being replaced/ });
  await expect(row).toContainText("Pump 1 shakes");
  const { silences } = await call<Listed>(account, "GET", "/api/silences");
  expect(silences).toMatchObject([{ alertIds: [world.ruleId], bucketId: null, reason: "bearing is being replaced" }]);
  const seconds = (Date.parse(silences[0]!.until) - Date.now()) / 1000;
  expect(seconds).toBeGreaterThan(7_000);
  expect(seconds).toBeLessThanOrEqual(7_200);

  // A trigger under a silence is marked in the history.
  const { alertRule } = await call<{ alertRule: { _id: string } }>(account, "POST", "/api/alerts", {
    bucketId: world.bucketId,
    dataSourceId: world.sourceId,
    name: "Quiet",
    naturalLanguageQuery: "vibration exceeds 5",
    evaluation: { intervalSeconds: 60, windowSeconds: 300, inputs: [{ key: "x", field: "vibration" }], parameters: {} },
  });
  await section.getByRole("button", { name: "New silence" }).click();
  await page.getByLabel("Silence", { exact: true }).selectOption({ label: "every rule of Pumping station" });
  await page.getByLabel("Reason").fill("storm");
  await create.click();
  await expect(section.getByRole("row", { name: /storm/ })).toContainText("every rule of Pumping station");
  const path = `/api/evaluations/${alertRule._id}/verdict`;
  await call(account, "POST", path, { outcome: "met" }, world.integrationKey);
  await visit(page, `#/rules/${alertRule._id}`);
  await expect(page.getByRole("row", { name: /fired silenced/ })).toBeVisible();

  await visit(page, "#/rules");
  for (const left of [1, 0]) {
    await section.getByRole("button", { name: "End" }).first().click();
    await page.getByRole("button", { name: "End silence" }).click();
    await expect(section.getByRole("button", { name: "End" })).toHaveCount(left);
  }
  expect((await call<Listed>(account, "GET", "/api/silences")).silences).toEqual([]);
});
