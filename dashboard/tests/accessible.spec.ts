/** Every page, in both themes, by the rules of WCAG 2.2 AA that a machine can check; and by keyboard alone. */
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { makeWorld, pagesOf, signUp } from "./support/api";
import { expect, open, settled, test, visit } from "./support/test";

async function violations(page: Page): Promise<string[]> {
  const result = await new AxeBuilder({ page })
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
    .analyze();
  return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing, ${colorScheme}`, async ({ page, service }) => {
    test.setTimeout(400_000);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const hash of ["#/login", "#/signup"]) {
      await page.goto(`${service.url}/${hash}`);
      await expect(page.locator("h1")).toBeVisible();
      expect(await violations(page), hash).toEqual([]);
    }
    const account = await signUp(service.url);
    await open(page, account);
    expect(await violations(page), "guide").toEqual([]);
    for (const hash of ["#/explore", "#/buckets", "#/rules", "#/webhooks"]) {
      await visit(page, hash);
      expect(await violations(page), `empty ${hash}`).toEqual([]);
    }
    const world = await makeWorld(account);
    for (const [name, hash] of Object.entries(pagesOf(world, "vibration"))) {
      await visit(page, hash);
      expect(await violations(page), name).toEqual([]);
    }
    await visit(page, `#/buckets/${world.bucketId}`);
    await page.getByRole("button", { name: "Delete" }).click();
    expect(await violations(page), "dialog").toEqual([]);
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
  const world = await makeWorld(account);
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
  await settled(page);
  await page.keyboard.press("-");
  await page.goBack();
  await page.goBack();
  await expect.poll(() => page.url()).toContain("r=6h");
  const field = page.getByRole("checkbox", { name: /running/ });
  await field.focus();
  await page.keyboard.press("Space");
  await expect.poll(() => page.url()).toContain("running");
  await settled(page);
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
  const world = await makeWorld(account);
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
