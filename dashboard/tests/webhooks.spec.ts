/** Webhooks of other formats than the standard one, and sources that webhooks hear of. */
import { call, createWorld, signUp } from "./support/api";
import { expect, open, test } from "./support/test";

test("a webhook sends a template, whose mistakes are shown at it", async ({ page, service }) => {
  const account = await signUp(service.url);
  await open(page, account, "#/webhooks");
  await page.getByRole("button", { name: "New webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("URL", { exact: true }).fill("https://hooks.invalid/tides");
  await dialog.getByLabel("Format").selectOption("template");
  const template = dialog.getByLabel("Template");
  await template.fill('{"text": "{{data.alertname}}"}');
  await dialog.getByRole("button", { name: "Create webhook" }).click();
  await expect(dialog.getByText("data.alertname}} is no member of an event", { exact: false })).toBeVisible();
  await template.fill('{"text": "{{data.alertName}}"}');
  await dialog.getByRole("button", { name: "Create webhook" }).click();
  await expect(page.getByText("whsec_", { exact: false })).toBeVisible();
  const made = await call<{ webhooks: { format: string; template: string }[] }>(account, "GET", "/api/webhooks");
  const [webhook] = made.webhooks;
  expect(webhook).toMatchObject({ format: "template", template: '{"text": "{{data.alertName}}"}' });
});

test("a source's expected interval is set, refused and removed on its page", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const path = `/api/buckets/${world.bucketId}/sources/${world.sourceId}`;
  const expected = async () => {
    const shown = await call<{ dataSource: { expectedIntervalSeconds: number | null } }>(account, "GET", path);
    return shown.dataSource.expectedIntervalSeconds;
  };
  const edit = `#/buckets/${world.bucketId}/sources/${world.sourceId}/edit`;
  await open(page, account, edit);
  const field = page.getByLabel("Expected interval");
  const save = page.getByRole("button", { name: "Save" });
  await field.fill("0");
  await save.click();
  await expect(page.getByText("must be an integer from 1 to 31536000", { exact: false })).toBeVisible();
  await field.fill("soon");
  await expect(page.getByText("Must be a length such as 90s, 5m or 2h")).toBeVisible();
  await field.fill("1m");
  await save.click();
  await expect(page.getByText("saved", { exact: false })).toBeVisible();
  expect(await expected()).toBe(60);
  await page.goto(`${service.url}/${edit}`);
  await expect(field).toHaveValue("1m");
  await field.fill("");
  await save.click();
  await expect.poll(expected).toBe(null);
});
