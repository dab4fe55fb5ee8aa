/** A walk through the whole dashboard as a first-time user. */
import { call, startReceiver, type Account } from "./support/api";
import { expect, waitUntilSettled, test } from "./support/test";

test("from sign-up to a delivered trigger", async ({ page, service }) => {
  const receiver = await startReceiver();
  await page.goto(`${service.url}/#/signup`);
  await page.getByLabel("Your name").fill("Grace");
  await page.getByLabel("Email").fill("grace@example.com");
  await page.getByLabel("Password").fill("short");
  await page.getByRole("button", { name: "Create account" }).click();
  await expect(page.getByText("Must have 10 to 128 characters")).toBeVisible();
  const password = page.getByLabel("Password");
  await password.fill("correct horse battery");
  await expect(password).toHaveAttribute("type", "password");
  await page.getByRole("button", { name: "Show password" }).click();
  await expect(password).toHaveAttribute("type", "text");
  await page.getByRole("button", { name: "Hide password" }).click();
  await expect(password).toHaveAttribute("type", "password");
  await page.getByLabel("Organization").fill("Tide Lab");
  await page.getByRole("button", { name: "Create account" }).click();

  await expect(page.getByRole("heading", { name: "Getting started" })).toBeVisible();
  await page.getByRole("link", { name: "Create a bucket" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Plant");
  await page.getByRole("button", { name: "Create bucket" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Plant" })).toBeVisible();
  const bucketId = /buckets\/([0-9a-f]{24})/.exec(page.url())![1]!;

  await page.getByRole("link", { name: "Create a source" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Boiler");
  await page.getByLabel("Name of field 1").fill("temperature");
  await page.getByLabel("Unit of temperature").fill("°C");
  await page.getByRole("button", { name: "Create source" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Boiler" })).toBeVisible();
  const sourceId = /sources\/([0-9a-f]{24})/.exec(page.url())![1]!;
  await expect(page.getByText(`"dataSourceId":"${sourceId}"`)).toBeVisible();

  await page.getByRole("link", { name: "keys" }).click();
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("gateway");
  await page.getByRole("button", { name: "Create key" }).click();
  const key = await page.locator(".secret-value code").innerText();
  expect(key).toMatch(/^svc_w_/);
  await page.getByRole("button", { name: "I have copied it" }).click();
  await expect(page.getByText("gateway")).toBeVisible();
  await expect(page.getByText(key)).toHaveCount(0);

  const account: Account = { url: service.url, token: "", email: "", password: "" };
  const dataPoints = Array.from({ length: 40 }, (_, index) => ({
    dataSourceId: sourceId,
    timestamp: new Date(Date.now() - (40 - index) * 20_000).toISOString(),
    values: { temperature: 20 + index },
  }));
  await call(account, "POST", "/api/data/batch", { bucketId, dataPoints }, key);
  await page.goto(`${service.url}/#/explore?f=${bucketId}.${sourceId}.temperature&r=1h`);
  await waitUntilSettled(page);
  await expect(page.getByTestId("chart-points")).toHaveText("40 points");
  await expect(page.locator(".plot canvas")).toBeVisible();
  await expect(page.locator(".legend")).toContainText("Boiler · temperature");
  await expect(page.locator(".legend-value")).toHaveText("59 °C");

  await page.goto(`${service.url}/#/webhooks`);
  await page.getByRole("button", { name: "New webhook" }).click();
  await page.getByLabel("URL").fill(receiver.url);
  await page.getByRole("button", { name: "Create webhook" }).click();
  await expect(page.locator(".secret-value code")).toHaveText(/^whsec_/);
  await page.getByRole("button", { name: "I have copied it" }).click();

  await page.goto(`${service.url}/#/organization`);
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("evaluator");
  await page.getByRole("button", { name: "Create key" }).click();
  const evaluatorKey = await page.locator(".secret-value code").innerText();
  expect(evaluatorKey).toMatch(/^svc_i_/);
  await page.getByRole("button", { name: "I have copied it" }).click();

  await page.goto(`${service.url}/#/rules/new?bucket=${bucketId}&source=${sourceId}`);
  await page.getByLabel("Name", { exact: true }).fill("Boiler runs hot");
  await page.getByLabel("Evaluated every").fill("5");
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByText("Must be from 1 min to 1 d, not 5 s.")).toBeVisible();
  await page.getByLabel("Evaluated every").fill("60");
  await page.getByLabel("Field", { exact: true }).selectOption("temperature");
  await page.getByLabel("Value (°C)").fill("50");
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Boiler runs hot" })).toBeVisible();
  const ruleId = /rules\/([0-9a-f]{24})/.exec(page.url())![1]!;
  await expect(page.locator(".intro")).toHaveText("temperature is above 50 °C");

  const due = await call<{ count: number }>(account, "GET", "/api/evaluations/due", undefined, evaluatorKey);
  expect(due.count).toBe(1);
  await call(
    account,
    "POST",
    `/api/evaluations/${ruleId}/verdict`,
    { outcome: "met", evidence: { currentValue: 59 } },
    evaluatorKey,
  );
  await expect.poll(() => receiver.bodies.length).toBe(1);
  expect(JSON.parse(receiver.bodies[0]!)).toMatchObject({ event: "alert.triggered", data: { alertId: ruleId } });

  await page.reload();
  await waitUntilSettled(page);
  await expect(page.locator(".figures").first()).toContainText("firing");
  await expect(page.getByRole("region", { name: "History", exact: true }).last()).toContainText("current value 59");
  await page.goto(`${service.url}/#/explore?f=${bucketId}.${sourceId}.temperature&r=1h`);
  await waitUntilSettled(page);
  await expect(page.getByText("1 trigger of alert rules marked.")).toBeVisible();
  await expect(page.getByRole("region", { name: "Triggers in this range" })).toContainText("Boiler runs hot");

  await page.goto(`${service.url}/#/webhooks`);
  await page.getByRole("link", { name: receiver.url }).click();
  await expect(page.getByRole("region", { name: "Deliveries", exact: true }).last()).toContainText("delivered");
  await page.getByRole("button", { name: "Send a test" }).click();
  await expect.poll(() => receiver.bodies.length).toBe(2);
  await expect(page.getByText("webhook.test")).toBeVisible();

  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  receiver.server.close();
});

test("a session that has ended leads to the login page, with a word why, and back", async ({ page, service }) => {
  await page.addInitScript(() => {
    if (sessionStorage.getItem("seen") !== null) return;
    sessionStorage.setItem("seen", "1");
    localStorage.setItem("tidewatch.session-ends", new Date(Date.now() + 3_600_000).toISOString());
  });
  await page.context().addCookies([{ name: "tidewatch_session", value: "stale", url: service.url }]);
  await page.goto(`${service.url}/#/buckets`);
  await expect(page.getByText("Your session has ended. Log in again to continue.")).toBeVisible();
  expect(page.url()).toContain("#/buckets");
});

test("no script can read what proves a session, and another page of the browser has it too", async ({
  page,
  context,
  service,
}) => {
  const { signUp } = await import("./support/api");
  const account = await signUp(service.url, "Grace");
  await page.addInitScript(() => {
    if (location.protocol !== "about:") localStorage.setItem("tidewatch.session", '{"token":"of an older page"}');
  });
  await page.goto(service.url);
  await page.getByLabel("Email").fill(account.email);
  await page.getByLabel("Password").fill(account.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("Grace", { exact: true })).toBeVisible();
  const readable = await page.evaluate(() => JSON.stringify({ ...localStorage }) + document.cookie);
  expect(readable).not.toContain("eyJ");
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ name: "tidewatch_session", httpOnly: true, sameSite: "Strict", secure: false });
  await page.reload();
  await expect(page.getByText("Grace", { exact: true })).toBeVisible();
  expect(await page.evaluate(() => localStorage.getItem("tidewatch.session"))).toBeNull();

  const other = await context.newPage();
  await other.goto(service.url);
  await expect(other.getByText("Grace", { exact: true })).toBeVisible();
  await other.getByRole("button", { name: "Log out" }).click();
  await expect(other.getByRole("heading", { name: "Log in" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  expect(await context.cookies()).toEqual([]);
});

test("deleting a bucket takes its name", async ({ page, service }) => {
  const { signUp, createWorld } = await import("./support/api");
  const { open } = await import("./support/test");
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/buckets/${world.bucketId}`);
  await page.getByRole("button", { name: "Delete" }).click();
  const confirm = page.getByRole("button", { name: "Delete for good" });
  await expect(confirm).toBeDisabled();
  await page.getByLabel("Type its name to confirm").fill("Pumping station");
  await confirm.click();
  await expect(page.getByText("1 source, 120 points, 1 key and 1 rule")).toBeVisible();
  await expect(page.getByText("No buckets yet")).toBeVisible();
});
