/** Dialogs and notices: focus, secrets shown once, and that nothing covers a control. */
import { chromium, type Locator, type Page } from "@playwright/test";
import { call, createWorld, signUp } from "./support/api";
import { expect, logInAs, open, waitUntilSettled, test, visit } from "./support/test";

test("a dialog begins at its first field, one that deletes at Cancel", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account);
  const bucket = `#/buckets/${world.bucketId}`;
  const dialogs: [string, string, Locator][] = [
    ["#/buckets", "New bucket", page.getByLabel("Name", { exact: true })],
    [bucket, "Edit", page.getByLabel("Name", { exact: true })],
    [bucket, "Delete", page.getByLabel("Type its name to confirm")],
    [`${bucket}/keys`, "New key", page.getByLabel("Name", { exact: true })],
    [`${bucket}/keys`, "Delete key edge gateway", page.getByRole("button", { name: "Cancel" })],
    ["#/webhooks", "New webhook", page.getByLabel("URL", { exact: true })],
    [`#/webhooks/${world.webhookId}`, "Delete", page.getByRole("button", { name: "Cancel" })],
    [`#/rules/${world.ruleId}`, "Delete", page.getByRole("button", { name: "Cancel" })],
  ];
  for (const [hash, name, first] of dialogs) {
    await visit(page, hash);
    await page.getByRole("button", { name, exact: true }).click();
    await expect(page.getByRole("dialog")).toBeVisible();
    await expect(first, `${hash} ${name}`).toBeFocused();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
  }
});

test("Escape does not take away a key that is shown this once", async ({ page, context, service }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/buckets/${world.bucketId}/keys`);
  const make = async () => {
    await page.getByRole("button", { name: "New key" }).click();
    await expect(page.getByLabel("Name", { exact: true })).toBeFocused();
    await page.keyboard.type("gateway");
    await page.keyboard.press("Enter");
    await expect(page.locator(".secret-value code")).toBeVisible();
  };
  await make();
  await page.keyboard.press("Escape");
  await expect(page.getByText("The key has not been copied, and closing loses it for good.")).toBeVisible();
  await expect(page.locator(".secret-value code")).toBeVisible();
  await page.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await make();
  await page.getByRole("button", { name: "Copy key" }).click();
  await expect(page.getByRole("button", { name: "Copied", exact: true })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("a key is made with an end, and rotated", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/buckets/${world.bucketId}/keys`);
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("guest");
  await page.getByLabel("Expires").selectOption("30");
  const monthOfEnd = () => new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 7);
  // The month may turn while the key is made.
  const before = monthOfEnd();
  await page.getByRole("button", { name: "Create key" }).click();
  const first = await page.locator(".secret-value code").textContent();
  await page.getByRole("button", { name: "I have copied it" }).click();
  const row = page.getByRole("row", { name: /guest/ });
  await expect(row).toContainText(new RegExp(`${before}|${monthOfEnd()}`));
  await expect(page.getByRole("row", { name: /edge gateway/ })).toContainText("never");
  await page.getByRole("button", { name: "Rotate key guest" }).click();
  await page.getByLabel("The present value goes on working for").selectOption("3600");
  await page.getByRole("button", { name: "Make new value" }).click();
  await expect(page.getByText("The former value works for 1 h more.")).toBeVisible();
  const second = (await page.locator(".secret-value code").textContent()) ?? "";
  expect(second).not.toBe(first);
  await page.getByRole("button", { name: "I have copied it" }).click();
  await expect(row).toContainText(second.slice(0, 12));
});

test("a dialog that was filled in asks before it closes, and is back after a log-in", async ({
  page,
  context,
  service,
}) => {
  const account = await signUp(service.url);
  await open(page, account, "#/buckets?new=1");
  await page.getByLabel("Name", { exact: true }).fill("Plant");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Stay here" }).click();
  await context.clearCookies();
  await page.getByRole("button", { name: "Create bucket" }).click();
  await page.getByLabel("Email").fill(account.email);
  await page.getByLabel("Password").fill(account.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Plant");
  await page.getByRole("button", { name: "Create bucket" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Plant" })).toBeVisible();
});

/** Buttons and links that are covered by a notice. */
const coveredControls = (page: Page) =>
  page.evaluate(() => {
    const notice = document.querySelector(".notice")!.getBoundingClientRect();
    return [...document.querySelectorAll("button, a, input, select")]
      .filter((element) => {
        const box = element.getBoundingClientRect();
        const apart =
          box.right <= notice.left || box.left >= notice.right || box.bottom <= notice.top || box.top >= notice.bottom;
        return box.width > 0 && !apart;
      })
      .map((element) => element.textContent);
  });

test("a notice lies over nothing that can be pressed", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  for (let count = 0; count < 8; count++) await call(account, "POST", `/api/webhooks/${world.webhookId}/test`);
  await open(page, account, `#/webhooks/${world.webhookId}`);
  for (const size of [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ]) {
    await page.setViewportSize(size);
    await page.getByRole("button", { name: "Redeliver" }).and(page.locator(":enabled")).first().click();
    await expect(page.getByText("Queued once more.").first()).toBeVisible();
    expect(await coveredControls(page), `${size.width}`).toEqual([]);
  }
});

test("a backdrop reaches the right edge", async ({ service }) => {
  // The test browser has no scroll bars by default.
  const browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
    ignoreDefaultArgs: ["--hide-scrollbars"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1000, height: 700 }, colorScheme: "light" });
    const account = await signUp(service.url);
    await logInAs(page, account);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.goto(`${account.url}/#/buckets?new=1`);
      await waitUntilSettled(page);
      await expect(page.getByRole("dialog")).toBeVisible();
      const png = (await page.screenshot()).toString("base64");
      const colours = await page.evaluate(async (data) => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        const context = Object.assign(document.createElement("canvas"), { width: 1000, height: 700 }).getContext("2d")!;
        context.drawImage(image, 0, 0);
        return [997, 975].map((x) => [...context.getImageData(x, 650, 1, 1).data]);
      }, png);
      for (const [index, value] of colours[0]!.entries())
        expect(Math.abs(value - colours[1]![index]!), colorScheme).toBeLessThanOrEqual(2);
      await page.goto("about:blank");
    }
  } finally {
    await browser.close();
  }
});
