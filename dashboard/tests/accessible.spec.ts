/** Accessibility of every page in both themes: automatic checks of WCAG 2.2 AA, and use by keyboard alone. */
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { call, createWorld, pagesOf, signUp } from "./support/api";
import { expect, open, waitUntilSettled, test, visit } from "./support/test";

async function violations(page: Page): Promise<string[]> {
  const result = await new AxeBuilder({ page })
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
    .analyze();
  return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

const SIZES = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing, ${colorScheme}`, async ({ page, service }) => {
    test.setTimeout(600_000);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const found: Record<string, string[]> = {};
    const checkPage = async (name: string) => {
      const faults = await violations(page);
      // Elements may have moved while axe measured colours; real violations are found again.
      const secondRun = faults.length > 0 ? await violations(page) : [];
      const confirmed = faults.filter((fault) => secondRun.includes(fault));
      if (confirmed.length > 0) found[name] = confirmed;
    };
    for (const hash of ["#/login", "#/signup", "#/invitation/inv_x", "#/reset/rst_x"]) {
      await page.goto(`${service.url}/${hash}`);
      await expect(page.locator("h1")).toBeVisible();
      // The page requests whether sign-up is open; the answer changes the layout under test.
      await page.waitForLoadState("networkidle");
      await checkPage(hash);
    }
    const account = await signUp(service.url);
    await open(page, account);
    await checkPage("guide");
    for (const hash of ["#/explore", "#/buckets", "#/rules", "#/webhooks"]) {
      await visit(page, hash);
      await checkPage(`empty ${hash}`);
    }
    const world = await createWorld(account);
    // More objects of one kind, so that their lists have a search bar.
    for (let number = 0; number < 6; number++) {
      const path = `/api/buckets/${world.bucketId}/sources`;
      await call(account, "POST", path, { name: `Fan ${number}`, schema: { rpm: { type: "number" } } });
    }
    for (const [size, viewport] of Object.entries(SIZES)) {
      // Colours do not depend on the size, and each page takes a second.
      if (size === "phone" && colorScheme === "dark") continue;
      await page.setViewportSize(viewport);
      for (const [name, hash] of Object.entries(pagesOf(world, "vibration"))) {
        await visit(page, hash);
        await checkPage(`${name}, ${size}`);
      }
    }
    await page.setViewportSize(SIZES.desk);
    const bucket = `#/buckets/${world.bucketId}`;
    const dialogs: [string, string][] = [
      ["#/buckets", "New bucket"],
      [bucket, "Edit"],
      [bucket, "Delete"],
      [`${bucket}/keys`, "New key"],
      [`${bucket}/keys`, "Delete key edge gateway"],
      ["#/webhooks", "New webhook"],
      [`#/rules/${world.ruleId}`, "Delete"],
    ];
    for (const [hash, name] of dialogs) {
      await visit(page, hash);
      await page.getByRole("button", { name, exact: true }).click();
      await checkPage(`${hash} ${name}`);
      await page.keyboard.press("Escape");
    }
    await visit(page, pagesOf(world, "vibration")["explorer"]!);
    await page.getByRole("button", { name: "Filter and compute" }).click();
    for (const name of ["Add a condition on a value", "Add a condition on metadata", "Add a computed line", "Apply"])
      await page.getByRole("button", { name }).click();
    await checkPage("filter and compute, with faults");
    await page.keyboard.press("Escape");
    // A form with faults, the confirmation before leaving it, a secret that is shown once, and an outdated page.
    await visit(page, `#/rules/new?bucket=${world.bucketId}`);
    for (const kind of ["Threshold", "Range", "Change", "No data", "Outlier", "Own evaluator"]) {
      await page.getByRole("button", { name: kind }).click();
      await page.getByRole("button", { name: "Create rule" }).click();
      await checkPage(kind);
    }
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Buckets" }).click();
    await checkPage("leaving");
    await page.getByRole("button", { name: "Leave and lose it" }).click();
    await visit(page, `${bucket}/keys`);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("other");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.locator(".secret-value code").waitFor();
    await page.keyboard.press("Escape");
    await checkPage("shown once");
    await page.keyboard.press("Escape");
    await page.route("**/api/**", (route) => route.abort());
    await page.getByText(/Not up to date/).waitFor();
    await checkPage("behind");
    expect(found).toEqual({});
  });
}

test("log in by keyboard", async ({ page, service }) => {
  const account = await signUp(service.url);
  await page.goto(`${service.url}/#/login`);
  await expect(page.locator("h1")).toBeVisible();
  const email = page.getByLabel("Email");
  for (
    let presses = 0;
    presses < 8 && !(await email.evaluate((element) => element === document.activeElement));
    presses++
  ) {
    await page.keyboard.press("Tab");
  }
  await page.keyboard.type(account.email);
  await page.keyboard.press("Tab");
  await page.keyboard.type(account.password);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeFocused();
});

test("the explorer by keyboard", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const hash = `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h`;
  await open(page, account, hash);
  const chart = page.getByRole("group", { name: /^Chart of/ });
  await chart.focus();
  await page.keyboard.press("End");
  const newest = await page.locator(".legend caption").innerText();
  await page.keyboard.press("ArrowLeft");
  await expect(page.locator(".legend caption")).not.toHaveText(newest);
  await page.keyboard.press("+");
  await expect.poll(() => page.url()).toContain("from=");
  await waitUntilSettled(page);
  await page.keyboard.press("-");
  await page.goBack();
  await page.goBack();
  await expect.poll(() => page.url()).toContain("r=6h");
  const field = page.getByRole("checkbox", { name: /running/ });
  await field.focus();
  await page.keyboard.press("Space");
  await expect.poll(() => page.url()).toContain("running");
  await waitUntilSettled(page);
  await expect(page.locator(".legend")).toContainText("Pump 1 · running");
});

test("a dialog holds the focus and gives it back", async ({ page, service }) => {
  const account = await signUp(service.url);
  await open(page, account, "#/buckets");
  const button = page.getByRole("button", { name: "New bucket" });
  await button.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog")).toBeVisible();
  for (let presses = 0; presses < 9; presses++) {
    await page.keyboard.press("Tab");
    expect(
      await page.evaluate(
        () => document.activeElement === document.body || document.activeElement?.closest("dialog") !== null,
      ),
    ).toBe(true);
  }
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(button).toBeFocused();
});

test("no page is wider than a phone", async ({ page, service }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 360, height: 780 });
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account);
  for (const [name, hash] of Object.entries(pagesOf(world, "vibration"))) {
    await visit(page, hash);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(overflow, name).toBeLessThanOrEqual(0);
  }
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Webhooks" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Webhooks" })).toBeFocused();
  await expect(page.getByRole("navigation", { name: "Main" })).toBeHidden();
});
