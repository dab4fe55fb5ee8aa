/** Changes of objects, and the message after each. */
import { call, createWorld, signUp } from "./support/api";
import { expect, open, waitUntilSettled, test, visit } from "./support/test";

test("the password: a wrong one is said, the right one keeps the session", async ({ page, service }) => {
  const account = await signUp(service.url);
  await open(page, account, "#/account");
  await page.getByLabel("Current password").fill("not the one");
  await page.getByLabel("New password").fill("another horse");
  await page.getByRole("button", { name: "Change password" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByLabel("Current password").fill(account.password);
  await page.getByRole("button", { name: "Change password" }).click();
  await expect(page.getByText("The password has been changed.")).toBeVisible();
  await visit(page, "#/buckets");
  await expect(page.getByText("No buckets yet")).toBeVisible();
});

test("a rule is paused, resumed and changed, and keeps its state", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/rules/${world.ruleId}`);
  await page.getByRole("button", { name: "Pause" }).click();
  await expect(page.getByText("not evaluated while paused")).toBeVisible();
  await page.getByRole("button", { name: "Resume" }).click();
  await expect(page.locator(".figures").first()).toContainText("firing");
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Clears after").fill("0");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Pump 1 shakes" })).toBeVisible();
  await expect(page.locator(".figures").first()).toContainText("firing");
  await expect(page.getByText("Clears after").locator("..")).toContainText("0 s");
});

test("a source gains a field and keeps the others", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/buckets/${world.bucketId}/sources/${world.sourceId}/edit`);
  await expect(page.getByLabel("Name of vibration")).toBeDisabled();
  await page.getByLabel("Unit of vibration").fill("");
  await page.getByRole("button", { name: "Add a field" }).click();
  await page.getByLabel("Name of field 4").fill("flow");
  await page.getByLabel("Unit of flow").fill("l/s");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Pump 1" })).toBeVisible();
  const path = `/api/buckets/${world.bucketId}/sources/${world.sourceId}`;
  const { dataSource } = await call<{ dataSource: { schema: Record<string, unknown> } }>(account, "GET", path);
  expect(dataSource.schema["flow"]).toEqual({ type: "number", unit: "l/s" });
  expect(dataSource.schema["vibration"]).toEqual({ type: "number", description: "auto" });
});

test("a deleted key is refused at once", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, "#/organization");
  await page.getByRole("button", { name: "Delete key edge gateway" }).click();
  await page.getByRole("button", { name: "Delete key", exact: true }).click();
  await expect(page.getByText("No keys yet")).toBeVisible();
  const due = call(account, "GET", "/api/evaluations/due", undefined, world.integrationKey);
  await expect(due).rejects.toThrow(/401/);
});

test("theme and time zone are this browser's, and stay", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h`);
  await page.getByRole("button", { name: "Local" }).click();
  await page.getByRole("button", { name: "Dark theme" }).click();
  await page.reload();
  await waitUntilSettled(page);
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect(page.getByRole("columnheader", { name: /^Time \(UTC\+0[12]:00\)/ })).toBeVisible();
});
