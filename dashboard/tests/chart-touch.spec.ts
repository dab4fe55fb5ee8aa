/** Touch gestures on the chart: pinching zooms, dragging moves the range, and the page still scrolls. */
import type { CDPSession, Page } from "@playwright/test";
import { createWorld, signUp } from "./support/api";
import { expect, open, waitUntilSettled, test } from "./support/test";

test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });

/** Moves fingers between positions, which are fractions of the plotting area's width. */
async function gesture(page: Page, touch: CDPSession, from: number[], to: number[]): Promise<void> {
  const area = page.locator(".u-over");
  await area.scrollIntoViewIfNeeded();
  const box = (await area.boundingBox())!;
  const at = (places: number[]) =>
    places.map((share, id) => ({ x: box.x + box.width * share, y: box.y + box.height / 2, id }));
  const send = (type: "touchStart" | "touchMove" | "touchEnd", places: number[]) =>
    touch.send("Input.dispatchTouchEvent", { type, touchPoints: at(places) });
  await send("touchStart", from);
  for (const part of [0.25, 0.5, 0.75, 1]) {
    await send(
      "touchMove",
      from.map((share, index) => share + (to[index]! - share) * part),
    );
  }
  await send("touchEnd", []);
}

const rangeOf = (page: Page): { from: number; to: number } => {
  const search = new URLSearchParams(page.url().split("?")[1]);
  return { from: Date.parse(search.get("from") ?? ""), to: Date.parse(search.get("to") ?? "") };
};

test("a pinch zooms, a drag moves, and neither goes beyond now", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const hour = 3_600_000;
  const start = new Date(Date.now() - 2 * hour).toISOString();
  const end = new Date(Date.now() - hour).toISOString();
  await open(page, account, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&from=${start}&to=${end}`);
  const before = { from: Date.parse(start), to: Date.parse(end) };
  const touch = await page.context().newCDPSession(page);

  await gesture(page, touch, [0.4, 0.6], [0.1, 0.9]);
  await expect.poll(() => rangeOf(page).from).toBeGreaterThan(before.from + hour / 4);
  const zoomed = rangeOf(page);
  expect(zoomed.to - zoomed.from).toBeGreaterThan(hour / 5);
  expect(zoomed.to - zoomed.from).toBeLessThan(hour / 3);
  await waitUntilSettled(page);

  await gesture(page, touch, [0.2], [0.7]);
  await expect.poll(() => rangeOf(page).from).toBeLessThan(zoomed.from - 60_000);
  const moved = rangeOf(page);
  expect(Math.abs(moved.to - moved.from - (zoomed.to - zoomed.from))).toBeLessThan(5000);
  await waitUntilSettled(page);

  await gesture(page, touch, [0.05, 0.95], [0.49, 0.51]);
  await expect.poll(() => rangeOf(page).from).toBeLessThan(moved.from - hour);
  expect(rangeOf(page).to).toBeLessThanOrEqual(Date.now() + 1000);
});

test("all of the toolbar is inside the screen", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h`);
  for (const button of await page.locator(".toolbar button, .toolbar select").all()) {
    const box = (await button.boundingBox())!;
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(390);
  }
});
