/** Annotations on the explorer's chart: added, read with the mouse and the keyboard, and deleted. */
import { call, createWorld, signUp } from "./support/api";
import { expect, open, test } from "./support/test";

interface Listed {
  annotations: { text: string; dataSourceId: string | null; at: string; until: string | null }[];
}

test("a note is added at the cursor, shown over its line, and deleted", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const at = new Date(Date.now() - 60 * 60_000).toISOString();
  const until = new Date(Date.now() - 30 * 60_000).toISOString();
  const text = "<b>valve</b> left open";
  await call(account, "POST", "/api/annotations", { bucketId: world.bucketId, at, until, text });
  // One about another source, and one outside of the range.
  const before = new Date(Date.now() - 9 * 3_600_000).toISOString();
  await call(account, "POST", "/api/annotations", { bucketId: world.bucketId, at: before, text: "yesterday's news" });
  await open(page, account, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h`);
  const section = page.getByRole("region", { name: "Annotations in this range" });
  await expect(section.getByRole("listitem")).toHaveCount(1);
  await expect(section.getByRole("listitem")).toContainText(text);
  const mark = page.getByRole("button", { name: `Annotation: ${text}` });
  await expect(page.locator(".plot-note")).toHaveCount(1);
  const shown = mark.locator("span");
  await expect(shown).toBeHidden();
  await mark.hover();
  await expect(shown).toBeVisible();
  await expect(shown).toHaveText(text);
  await page.mouse.move(0, 0);
  await expect(shown).toBeHidden();
  // The keyboard goes from the chart to its notes.
  await page.getByRole("group", { name: /^Chart of/ }).focus();
  await page.keyboard.press("Tab");
  await expect(mark).toBeFocused();
  await expect(shown).toBeVisible();

  // At the cursor of the chart.
  const box = (await page.locator(".u-over").boundingBox())!;
  await page.mouse.move(box.x + box.width / 2, box.y + 120);
  await page.getByRole("group", { name: /^Chart of/ }).focus();
  await page.keyboard.press("Home");
  await section.getByRole("button", { name: "Annotate" }).click();
  await page.getByLabel("Text", { exact: true }).fill("bearing replaced");
  await page.getByLabel("At", { exact: true }).fill("soon");
  await page.getByRole("button", { name: "Add annotation" }).click();
  await expect(page.getByText("Must be a time such as now-2h")).toBeVisible();
  await page.getByLabel("At", { exact: true }).fill("now-1h");
  await page.getByRole("button", { name: "Add annotation" }).click();
  await expect(section.getByRole("listitem")).toHaveCount(2);
  await expect(page.locator(".plot-note")).toHaveCount(2);
  const { annotations } = await call<Listed>(account, "GET", "/api/annotations");
  expect(annotations.at(-1)).toMatchObject({ text: "bearing replaced", dataSourceId: world.sourceId, until: null });

  await section.getByRole("listitem").filter({ hasText: "bearing" }).getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete annotation" }).click();
  await expect(section.getByRole("listitem")).toHaveCount(1);
  await expect(page.locator(".plot-note")).toHaveCount(1);
  expect((await call<Listed>(account, "GET", "/api/annotations")).annotations).toHaveLength(2);
});
