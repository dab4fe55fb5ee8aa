/** Nothing is cut off beside the navigation of a small screen, nor on a phone. */
import type { Page } from "@playwright/test";
import { createWorld, pagesOf, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

/** Frames whose content is wider than they are; code scrolls inside itself. */
const cutOff = (page: Page) =>
  page.evaluate(() =>
    [...document.querySelectorAll(".table-frame, .legend, .figures, .toolbar, .segments")]
      .filter((frame) => frame.scrollWidth > frame.clientWidth + 1)
      .map((frame) => `${frame.className}: ${frame.scrollWidth} of ${frame.clientWidth} px`),
  );

for (const width of [1024, 1280, 390]) {
  test(`tables and legends fit at ${width} px`, async ({ page, service }) => {
    await page.setViewportSize({ width, height: 844 });
    const account = await signUp(service.url);
    const world = await createWorld(account);
    await open(page, account);
    for (const [name, hash] of Object.entries(pagesOf(world, "vibration"))) {
      await visit(page, hash);
      expect(await cutOff(page), name).toEqual([]);
    }
  });
}

test("on a phone, buttons that are pictures say what they do", async ({ page, service }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/buckets/${world.bucketId}/keys`);
  const rotate = page.getByRole("button", { name: "Rotate key edge gateway" });
  const shown = await rotate.evaluate((button) => getComputedStyle(button, "::after").content);
  expect(shown).toBe('"Rotate key edge gateway"');
});
