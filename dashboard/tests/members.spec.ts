/** People of an organization: invited by a link, in a role, with sessions that can be ended. */
import { call, createWorld, signUp, type Account } from "./support/api";
import { expect, open, test, visit } from "./support/test";

const PASSWORD = "staple battery horse";

/** A member in this role, who has accepted an invitation. */
async function join(owner: Account, role: string): Promise<Account> {
  const email = `${role}-${owner.email}`;
  const body = { email, role };
  const made = await call<{ invitation: { token: string } }>(owner, "POST", "/api/organization/invitations", body);
  const joined = await call<{ token: string }>(owner, "POST", "/api/auth/invitations/accept", {
    token: made.invitation.token,
    name: `Grace the ${role}`,
    password: PASSWORD,
  });
  return { url: owner.url, token: joined.token, email, password: PASSWORD };
}

test("the audit shows an owner who changed what", async ({ page, service }) => {
  const owner = await signUp(service.url);
  await join(owner, "editor");
  await call(owner, "PATCH", "/api/organization", { name: "Tide Laboratory" });
  await open(page, owner, "#/organization");
  const audit = page.getByRole("group", { name: "Audit" });
  const renamed = audit.getByRole("row", { name: /organization updated/ });
  await expect(renamed).toContainText("127.0.0.1");
  await renamed.getByText("name", { exact: true }).first().click();
  await expect(renamed).toContainText("→ Tide Laboratory");
  await expect(audit.getByRole("row", { name: /member created/ })).toContainText("Grace the editor");
});

test("an owner invites by a link, which makes a member once", async ({ page, browser, service }) => {
  const owner = await signUp(service.url);
  await open(page, owner, "#/organization");
  await page.getByRole("button", { name: "Invite" }).click();
  const email = `grace-${owner.email}`;
  await page.getByRole("textbox", { name: "Email" }).fill(email);
  await page.getByLabel("Role", { exact: true }).selectOption("viewer");
  await page.getByRole("button", { name: "Create link" }).click();
  const shown = page.getByRole("dialog", { name: `Invitation for ${email}` });
  const link = (await shown.locator(".secret-value code").innerText()).trim();
  expect(link).toContain(`${owner.url}/#/invitation/inv_`);
  await shown.getByRole("button", { name: "I have copied it" }).click();
  await expect(page.getByRole("group", { name: "Open invitations" })).toContainText(email);

  const other = await (await browser.newContext()).newPage();
  await other.goto(link);
  await other.getByLabel("Your name").fill("Grace");
  await other.getByLabel("Password", { exact: true }).fill("short");
  await other.getByRole("button", { name: "Create account" }).click();
  await expect(other.getByText("must have 10 to 128 characters")).toBeVisible();
  await other.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await other.getByRole("button", { name: "Create account" }).click();
  await expect(other.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
  await other.context().clearCookies();
  await other.goto("about:blank");
  await other.goto(link);
  await other.getByLabel("Your name").fill("Grace");
  await other.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await other.getByRole("button", { name: "Create account" }).click();
  await expect(other.getByText("This invitation was used or withdrawn")).toBeVisible();
  await other.context().close();

  await page.reload();
  const members = page.getByRole("group", { name: "Members" });
  await expect(members).toContainText("Grace");
  await page.getByRole("button", { name: "Change the role of Grace" }).click();
  await page.getByRole("dialog").getByLabel("Role", { exact: true }).selectOption("editor");
  await page.getByRole("button", { name: "Change role", exact: true }).click();
  await expect(members.getByRole("row", { name: /Grace/ })).toContainText("editor");
  await page.getByRole("button", { name: "Remove Grace" }).click();
  await page.getByRole("button", { name: "Remove member" }).click();
  await expect(members).not.toContainText("Grace");
});

test("a link sets a new password", async ({ page, browser, service }) => {
  const owner = await signUp(service.url);
  const member = await join(owner, "editor");
  await open(page, owner, "#/organization");
  await page.getByRole("button", { name: "Reset the password of Grace the editor" }).click();
  await page.getByRole("button", { name: "Create link" }).click();
  const shown = page.getByRole("dialog", { name: "New password for Grace the editor" });
  const link = (await shown.locator(".secret-value code").innerText()).trim();
  const other = await (await browser.newContext()).newPage();
  await other.goto(link);
  await other.getByLabel("New password", { exact: true }).fill("another battery horse");
  await other.getByRole("button", { name: "Set password" }).click();
  await expect(other.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
  await expect(call(member, "GET", "/api/auth/me")).rejects.toThrow(/401/);
  await other.context().close();
});

test("a viewer sees everything and no button that would be refused", async ({ page, service }) => {
  const owner = await signUp(service.url);
  const world = await createWorld(owner);
  const viewer = await join(owner, "viewer");
  await open(page, viewer, "#/organization");
  await expect(page.getByRole("group", { name: "Organization keys" })).toBeVisible();
  const bucket = `#/buckets/${world.bucketId}`;
  for (const hash of [
    "#/organization",
    "#/buckets",
    bucket,
    `${bucket}/sources`,
    `${bucket}/keys`,
    `${bucket}/connect`,
    `${bucket}/rules`,
    `${bucket}/sources/${world.sourceId}`,
    "#/rules",
    `#/rules/${world.ruleId}`,
    "#/webhooks",
    `#/webhooks/${world.webhookId}`,
  ]) {
    await visit(page, hash);
    const changing = /^(New|Edit|Delete|Remove|Rotate|Rename|Pause|Resume|Acknowledge|Invite|Send a test|Redeliver|Watch it|Create)/;
    await expect(page.getByRole("main").getByRole("button", { name: changing })).toHaveCount(0);
    await expect(page.getByRole("main").getByRole("link", { name: changing })).toHaveCount(0);
  }
  await open(page, owner, bucket);
  await expect(page.getByRole("button", { name: "Delete" })).toBeVisible();
});

test("sessions are listed, and another one is ended", async ({ page, service }) => {
  const account = await signUp(service.url);
  const body = { email: account.email, password: account.password };
  const other = await fetch(`${service.url}/api/auth/login`, {
    method: "POST",
    headers: { "User-Agent": "a forgotten laptop" },
    body: JSON.stringify(body),
  });
  const { token } = (await other.json()) as { token: string };
  await open(page, account, "#/account");
  const sessions = page.getByRole("group", { name: "Sessions" });
  await expect(sessions).toContainText("this one");
  await page.getByRole("button", { name: "End the session of a forgotten laptop" }).click();
  await page.getByRole("button", { name: "End session" }).click();
  await expect(sessions).not.toContainText("a forgotten laptop");
  await expect(call({ ...account, token }, "GET", "/api/auth/me")).rejects.toThrow(/401/);
  await expect(page.getByRole("heading", { level: 1, name: "Account" })).toBeVisible();
});
