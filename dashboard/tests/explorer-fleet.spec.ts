/** Many sources and rules: all matches are selected together, and a rule's history is read only when it fires. */
import { call, createSource, createWorld, signUp } from "./support/api";
import { expect, open, test } from "./support/test";

test("all found fields are picked at once, as many as a view holds", async ({ page, service }) => {
  const account = await signUp(service.url);
  const { bucketId } = await createSource(account, { level: { type: "number" } }, { name: "Tank 0" });
  const names = Array.from({ length: 29 }, (_, n) => (n < 4 ? `Pump ${n}` : `Tank ${n}`));
  for (const name of names) await createSource(account, { level: { type: "number" } }, { name, bucketId });
  await open(page, account, "#/explore");
  const search = page.getByPlaceholder("Find a source or field");
  await search.fill("pump");
  await page.getByRole("button", { name: "Select all found (4)" }).click();
  await expect(page.locator(".picker input[type=checkbox]:checked")).toHaveCount(4);
  await search.fill("tank");
  await page.getByRole("button", { name: "Select the first 20 of 26 found" }).click();
  await expect(page.getByText("24 lines are as many as a view holds.")).toBeVisible();
  await expect(page.getByRole("button", { name: /Select/ })).toHaveCount(0);
});

test("a trigger is marked when its rule fires, and no history is read without one", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const histories: string[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/history")) histories.push(request.url());
  });
  await page.clock.install();
  await open(page, account, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h&live=1`);
  await expect(page.getByText("1 trigger of alert rules marked.")).toBeVisible();
  expect(histories).toHaveLength(1);
  const [asked] = await Promise.all([
    page.waitForResponse((response) => response.url().endsWith("/api/changes")),
    page.clock.fastForward(60_000),
  ]);
  expect(asked.status()).toBe(304);
  expect(histories).toHaveLength(1);

  const made = await call<{ alertRule: { _id: string } }>(account, "POST", "/api/alerts", {
    bucketId: world.bucketId,
    dataSourceId: world.sourceId,
    name: "Pump 1 is hot",
    naturalLanguageQuery: "it is hot",
    evaluation: {
      kind: "hot",
      intervalSeconds: 60,
      windowSeconds: 300,
      inputs: [{ key: "x", field: "vibration" }],
      parameters: {},
    },
  });
  const verdict = `/api/evaluations/${made.alertRule._id}/verdict`;
  await call(account, "POST", verdict, { outcome: "met", evidence: {} }, world.integrationKey);
  await page.clock.fastForward(11_000);
  await expect(page.getByText("2 triggers of alert rules marked.")).toBeVisible();
  // Of the rule that fired; the other one has not fired since it was read.
  expect(histories.slice(1).every((url) => url.includes(made.alertRule._id))).toBe(true);
});
