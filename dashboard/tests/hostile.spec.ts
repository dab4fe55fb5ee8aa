/** Names and values that are markup, script or far too long are shown as text everywhere. */
import { createWorld, pagesOf, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

const SCRIPT = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;
const LONG = `${"x".repeat(80)}<b>`;

for (const [kind, text] of [
  ["markup", SCRIPT],
  ["one endless word", LONG],
] as const) {
  test(`${kind} as every name`, async ({ page, service }) => {
    test.setTimeout(120_000);
    const account = await signUp(service.url, text, text);
    const world = await createWorld(account, {
      bucket: text,
      source: text,
      field: text,
      text,
      rule: text,
      key: text,
      evidence: { [text]: text },
      metadata: { [text]: text },
      webhookUrl: `http://127.0.0.1:9/${encodeURIComponent(text)}?a=<script>alert(3)</script>`,
    });
    await open(page, account);
    for (const width of [1440, 360]) {
      await page.setViewportSize({ width, height: 800 });
      for (const [name, hash] of Object.entries(pagesOf(world, text))) {
        await visit(page, hash);
        expect(await page.locator("script:not([src]), img[src='x'], main b").count(), `${name} at ${width}`).toBe(0);
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        expect(overflow, `${name} at ${width} is wider than the screen`).toBeLessThanOrEqual(0);
      }
    }
    await visit(page, "#/rules");
    await expect(page.getByRole("link", { name: text })).toBeVisible();
    await page.getByRole("link", { name: text }).click();
    await page.locator(".evidence summary").first().click();
    await expect(page.locator(".evidence pre").first()).toContainText(JSON.stringify(text).slice(1, -1));
  });
}

test("a URL that is not http is no link", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  // The server refuses such a URL, so its answer is modified on the way.
  await page.route(`**/api/webhooks/${world.webhookId}`, async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as { webhook: { url: string } };
    body.webhook.url = "javascript:alert(4)";
    await route.fulfill({ response, json: body });
  });
  await open(page, account, `#/webhooks/${world.webhookId}`);
  await expect(page.locator(".intro")).toHaveText("javascript:alert(4)");
  await expect(page.locator("a[href^='javascript']")).toHaveCount(0);
});
