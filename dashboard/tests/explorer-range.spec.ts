/** Choosing the range: typed words and times, zooming without moving the chart, and correct labels. */
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { createSource, createWorld, send, signUp, POINTS, type Account, type World } from "./support/api";
import { expect, open, waitUntilSettled, test, visit } from "./support/test";

const MINUTE = 60_000;

let account: Account;
let world: World;
test.beforeAll(async ({ service }) => {
  account = await signUp(service.url);
  world = await createWorld(account);
});

const hashOf = (rest: string) => `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&${rest}`;

async function typeRange(page: Page, from: string, to: string): Promise<void> {
  await page.getByLabel(/^From \(/).fill(from);
  await page.getByLabel(/^To \(/).fill(to);
  await page.getByRole("button", { name: "Show", exact: true }).click();
}

test("relative ranges, days and words are typed, stay in the address, and can be followed", async ({ page }) => {
  await open(page, account, hashOf("r=24h"));
  await page.getByRole("button", { name: "from–to" }).click();
  await expect(page.getByLabel(/^From \(/)).toHaveValue("now-24h");
  await typeRange(page, "now-6h", "now");
  await expect.poll(() => page.url()).toContain("from=now-6h&to=now");
  await waitUntilSettled(page);
  await expect(page.getByTestId("chart-points")).toHaveText(`${POINTS} points`);
  await page.getByRole("button", { name: "Live" }).click();
  await expect(page.getByText("· following")).toBeVisible();
  await expect(page.getByLabel(/^From \(/)).toHaveValue("now-6h");

  await typeRange(page, "2026-03-01", "");
  await expect.poll(() => page.url()).toContain("from=2026-03-01T00%3A00%3A00.000Z&to=2026-03-02T00%3A00%3A00.000Z");
  await typeRange(page, "yesterday", "");
  await expect.poll(() => page.url()).toContain("from=yesterday&to=yesterday");
  // The inputs are filled again after the range has changed.
  await expect(page.getByLabel(/^To \(/)).toHaveValue("yesterday");
  await typeRange(page, "soon", "");
  await expect(page.locator(".fault")).toContainText("Write a time as 2026-01-31 14:30, a day, now-6h");
});

test("the boxes hold a time with milliseconds", async ({ page }) => {
  await open(page, account, hashOf("from=2026-03-01T10:00:00.123Z&to=2026-03-01T11:00:00.456Z"));
  await page.getByRole("button", { name: "from–to" }).click();
  for (const box of await page.locator(".typed-range input").all()) {
    await expect(box).toHaveValue(/\.\d{3}$/);
    expect(await box.evaluate((input) => input.scrollWidth - input.clientWidth)).toBeLessThanOrEqual(0);
  }
});

test("each box names the offset of its own moment", async ({ page }) => {
  await open(page, account, hashOf("from=2026-10-20T10:00:00Z&to=2026-10-30T10:00:00Z"));
  await page.getByRole("button", { name: "Local" }).click();
  await page.getByRole("button", { name: "from–to" }).click();
  await expect(page.getByLabel("From (UTC+02:00)")).toHaveValue("2026-10-20 12:00:00");
  await expect(page.getByLabel("To (UTC+01:00)")).toHaveValue("2026-10-30 11:00:00");
  await page.getByLabel(/^From \(/).fill("2026-10-29");
  await expect(page.getByLabel("From (UTC+01:00)")).toBeFocused();
});

test("zooming leaves the chart where it is and says the range; zooming out ends at now", async ({ page }) => {
  await open(page, account, hashOf("r=6h"));
  const plot = page.locator(".u-over");
  const before = (await plot.boundingBox())!;
  await page.getByRole("button", { name: "Zoom in" }).click();
  await waitUntilSettled(page);
  await expect(page.locator(".chart-note")).toContainText(/over 3 h: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/);
  expect((await plot.boundingBox())!.y).toBe(before.y);
  for (let times = 0; times < 5; times++) await page.getByRole("button", { name: "Zoom out" }).click();
  await expect
    .poll(() => Date.parse(new URLSearchParams(page.url().split("?")[1]).get("to") ?? ""))
    .toBeLessThanOrEqual(Date.now());
});

test("keys zoom about the cursor and move the range", async ({ page }) => {
  const source = await createSource(account, { v: { type: "number" } });
  const newest = Math.floor(Date.now() / MINUTE) * MINUTE - 90 * MINUTE;
  const minutes = Array.from({ length: 8000 }, (_, n) => ({ at: newest - n * MINUTE, values: { v: n } }));
  await send(account, source, minutes);
  await open(page, account, `#/explore?f=${source.bucketId}.${source.sourceId}.v&r=24h`);
  const requestedSpan = () => {
    const search = new URLSearchParams(page.url().split("?")[1]);
    return ["from", "to"].map((edge) => Date.parse(search.get(edge) ?? "")) as [number, number];
  };
  const hours = () => Math.round(((requestedSpan()[1] - requestedSpan()[0]) / MINUTE) * 100) / 6000;
  await page.locator(".plot").focus();
  await page.keyboard.press("End");
  for (const length of [12, 6, 3]) {
    await page.keyboard.press("+");
    await expect.poll(hours).toBe(length);
    await waitUntilSettled(page);
  }
  const [from, to] = requestedSpan();
  expect(from).toBeLessThan(newest);
  expect(to).toBeGreaterThan(newest);
  expect(to - newest).toBeLessThan(15 * MINUTE);
  // The chart of points replaces that of averages and keeps the cursor's position.
  const clock = new Date(newest).toISOString().slice(0, 16).replace("T", " ");
  await expect(page.locator(".legend caption")).toContainText(clock);
  await page.keyboard.press("[");
  await expect.poll(requestedSpan).toEqual([from - 90 * MINUTE, to - 90 * MINUTE]);
  await page.keyboard.press("]");
  await expect.poll(requestedSpan).toEqual([from, to]);
  await expect(page.locator("#plot-keys")).toContainText("[ ] move the range earlier and later");
});

test("a key pressed right after another moves on from the range of the first", async ({ page }) => {
  const range = "from=2026-03-01T10:00:00Z&to=2026-03-01T11:00:00Z";
  await open(page, account, hashOf("r=24h"));
  await visit(page, hashOf(range));
  await page.locator(".plot").evaluate(async (plot) => {
    for (const key of ["[", "[", "]"]) {
      plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      // The key's change is rendered in a microtask, before any other event.
      await Promise.resolve();
    }
  });
  await waitUntilSettled(page);
  expect(page.url()).toContain("from=2026-03-01T09%3A30%3A00.000Z&to=2026-03-01T10%3A30%3A00.000Z");
});

test("a text typed right after Show stays in its box", async ({ page }) => {
  await open(page, account, hashOf("r=24h"));
  await page.getByRole("button", { name: "from–to" }).click();
  await page.getByLabel(/^From \(/).fill("now-6h");
  await page.locator(".typed-range").evaluate(async (form) => {
    (form as HTMLFormElement).requestSubmit();
    await Promise.resolve();
    const box = form.querySelector("input")!;
    box.value = "yesterday";
    box.dispatchEvent(new InputEvent("input", { bubbles: true }));
  });
  await expect.poll(() => page.url()).toContain("from=now-6h");
  await waitUntilSettled(page);
  await expect(page.getByLabel(/^From \(/)).toHaveValue("yesterday");
});

test("the last time of the axis is not cut off", async ({ page }) => {
  // The end of the range is a tick.
  await open(page, account, hashOf("from=2026-03-01T10:00:00Z&to=2026-03-01T11:00:00Z"));
  await visit(page, hashOf("from=2026-03-01T10:00:00Z&to=2026-03-01T11:00:00Z"));
  const edge = () =>
    page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>(".plot canvas")!;
      const strip = canvas.getContext("2d")!.getImageData(canvas.width - 2, 0, 2, canvas.height).data;
      return strip.filter((_, index) => index % 4 === 3).reduce((sum, alpha) => sum + alpha, 0);
    });
  await expect(page.locator(".plot canvas")).toBeVisible();
  expect(await edge()).toBe(0);
});

test("what is read on a button is in its name", async ({ page }) => {
  await open(page, account, hashOf("r=6h"));
  const found = await new AxeBuilder({ page }).withRules(["label-content-name-mismatch"]).analyze();
  expect(found.violations.flatMap((rule) => rule.nodes.map((node) => node.html))).toEqual([]);
  await page.getByRole("button", { name: "15m: the last 15 minutes" }).click();
  await expect.poll(() => page.url()).toContain("r=15m");
});
