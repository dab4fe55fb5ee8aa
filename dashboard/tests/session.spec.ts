/** Sessions end when they should and not earlier, and typed input survives their end. */
import { call, createWorld, signUp } from "./support/api";
import { expect, logInAs, open, test } from "./support/test";

test("logging out ends the session on the server", async ({ page, service }) => {
  const account = await signUp(service.url);
  await open(page, account);
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  await expect(call(account, "GET", "/api/auth/me")).rejects.toThrow(/401/);
});

test("what was typed into a rule is there again after the next log-in", async ({ page, context, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/rules/new?bucket=${world.bucketId}&source=${world.sourceId}`);
  await page.getByLabel("Name", { exact: true }).fill("Shakes");
  await page.getByLabel("Field", { exact: true }).selectOption("vibration");
  await page.getByLabel("Value (mm/s)").fill("5.5");
  await context.clearCookies();
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByText("Your session has ended. Log in again to continue.")).toBeVisible();
  await page.getByLabel("Email").fill(account.email);
  await page.getByLabel("Password").fill(account.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("Your earlier input has been restored.")).toBeVisible();
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Shakes");
  await expect(page.getByLabel("Value (mm/s)")).toHaveValue("5.5");
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Shakes" })).toBeVisible();
  // After saving, the next new rule begins empty, and there is no confirmation.
  await page.goto(`${account.url}/#/rules/new?bucket=${world.bucketId}`);
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("");
});

test("leaving a changed form asks, by a link, by Back and by logging out", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, "#/buckets");
  await page.evaluate((to) => (location.hash = to), `#/buckets/${world.bucketId}/sources/${world.sourceId}/edit`);
  const description = page.getByLabel("Description", { exact: true });
  const question = page.getByRole("dialog", { name: "Leave without saving?" });
  await description.fill("the one in the cellar");
  const ways = [
    () => page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Webhooks" }).click(),
    () => page.goBack(),
    () => page.getByRole("button", { name: "Log out" }).click(),
  ];
  for (const way of ways) {
    await way();
    await expect(question).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(question).toHaveCount(0);
    await expect(description).toHaveValue("the one in the cellar");
    expect(page.url()).toContain("/edit");
  }
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Webhooks" }).click();
  await page.getByRole("button", { name: "Leave and lose it" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Webhooks" })).toBeVisible();
  await page.goBack();
  await expect(page.getByRole("heading", { level: 1, name: "Edit source" })).toBeVisible();
  await expect(description).not.toHaveValue("the one in the cellar");
  await page.goBack();
  await expect(page.getByRole("heading", { level: 1, name: "Edit source" })).toHaveCount(0);
});

test("a new name of the organization is not lost, and once saved asks nothing", async ({ page, service }) => {
  await open(page, await signUp(service.url), "#/organization");
  const name = page.getByLabel("Name of the organization");
  await name.fill("  Lighthouse ");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Webhooks" }).click();
  await expect(page.getByRole("dialog", { name: "Leave without saving?" })).toBeVisible();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(name).toHaveValue("Lighthouse");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Webhooks" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Webhooks" })).toBeVisible();
});

test("a session older than an hour is renewed while a page is open, and no page notices", async ({
  page,
  context,
  service,
}) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const other = await context.newPage();
  await context.clock.install();
  for (const one of [page, other]) {
    await logInAs(one, account);
    await one.addInitScript(() => {
      if (location.protocol !== "about:" && localStorage.getItem("tidewatch.session-began") === null)
        localStorage.setItem("tidewatch.session-began", String(Date.now() - 2 * 3_600_000));
    });
    await one.goto(`${account.url}/#/rules/new?bucket=${world.bucketId}&source=${world.sourceId}`);
    await one.getByLabel("Name", { exact: true }).fill("Typed");
  }
  const ends = () => page.evaluate(() => Date.parse(localStorage.getItem("tidewatch.session-ends") ?? ""));
  const endsBefore = await ends();
  // Both pages share the clock; the first of them to renew the session renews it for the other.
  const renewed = context.waitForEvent("response", (response) => response.url().endsWith("/api/auth/renew"));
  await page.clock.runFor(61_000);
  const answer = await renewed;
  expect(answer.status()).toBe(200);
  // A token has whole seconds: renewed in the second of its log-in, it is the same token.
  expect(await answer.headerValue("set-cookie")).toContain("tidewatch_session=");
  await expect.poll(ends).toBeGreaterThan(endsBefore);
  let again = 0;
  for (const one of [page, other]) one.on("request", (request) => (again += Number(request.url().endsWith("/renew"))));
  await page.clock.runFor(61_000);
  for (const one of [page, other]) await expect(one.getByLabel("Name", { exact: true })).toHaveValue("Typed");
  expect(again).toBe(0);
});
