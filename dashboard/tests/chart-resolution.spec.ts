/** A chart draws about one value per pixel up to the end of the range, and the text below it states the resolution. */
import { readFileSync } from "node:fs";
import { createSource, send, signUp, type Account, type SourceRef } from "./support/api";
import { measurePixels } from "./support/pixels";
import { expect, open, waitUntilSettled, test, visit } from "./support/test";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let account: Account;
test.beforeAll(async ({ service }) => {
  account = await signUp(service.url);
});

const hashOf = (sources: SourceRef[], rest: string, field = "v") =>
  `#/explore?${sources.map(({ bucketId, sourceId }) => `f=${bucketId}.${sourceId}.${field}`).join("&")}&${rest}`;
const valuesDrawn = async (text: Promise<string>) => Number.parseInt((await text).replace(/,|up to /g, ""), 10);

test("an hour of three sources at 1 Hz is not some values a line, though each paused for days", async ({ page }) => {
  const now = Date.now();
  const sources: SourceRef[] = [];
  for (const name of ["One", "Two", "Three"]) {
    const bucketId = sources[0]?.bucketId;
    const schema = { v: { type: "number" } };
    const source = await createSource(account, schema, bucketId === undefined ? { name } : { name, bucketId });
    // The average interval of the source is minutes, the displayed points are seconds apart.
    await send(account, source, [{ at: now - 20 * DAY, values: { v: 1 } }]);
    const hour = Array.from({ length: 3600 }, (_, n) => ({
      at: now - n * SECOND,
      values: { v: n === 1800 ? 99 : (n % 7) + 20 * sources.length },
    }));
    await send(account, source, hour);
    sources.push(source);
  }
  await open(page, account, hashOf(sources, "r=1h"));
  const drawn = page.getByTestId("chart-points");
  expect(await valuesDrawn(drawn.innerText())).toBeGreaterThanOrEqual(700);
  await expect(page.locator(".chart-note")).toContainText(/averaged by 5 s of 10,\d{3} points; the band is min to max/);
  await expect(page.locator(".legend tbody tr").first()).toContainText("99");
  await expect.poll(async () => (await measurePixels(page)).to).toBeGreaterThan(0.98);
  await visit(page, hashOf(sources, "r=1h&by=raw"));
  await expect(page.locator(".remarks")).toContainText("the newest 10,000 are shown");
  await page.setViewportSize({ width: 390, height: 844 });
  await visit(page, hashOf(sources, "r=1h"));
  await expect.poll(() => valuesDrawn(drawn.innerText())).toBeLessThanOrEqual(400);
});

test("groups by hour reach to the newest point", async ({ page }) => {
  const source = await createSource(account, { v: { type: "number" } });
  // The range ends fifty minutes into an hour, whose group begins long before the end.
  const to = Math.floor(Date.now() / HOUR) * HOUR - 10 * MINUTE;
  await send(
    account,
    source,
    Array.from({ length: 600 }, (_, n) => ({ at: to - n * MINUTE, values: { v: n % 5 } })),
  );
  const range = `from=${new Date(to - 6 * HOUR).toISOString()}&to=${new Date(to).toISOString()}`;
  await open(page, account, hashOf([source], `${range}&by=hour`));
  await expect.poll(async () => (await measurePixels(page)).to).toBeGreaterThan(0.98);
});

test("a day by hour has 24 hours, and a point at its end is the next day's", async ({ page }) => {
  const source = await createSource(account, { v: { type: "number" } });
  const midnight = Math.floor(Date.now() / DAY) * DAY;
  const minutes = Array.from({ length: 30 * 60 }, (_, n) => ({ at: midnight - n * MINUTE, values: { v: 1 } }));
  await send(account, source, minutes);
  const day = `from=${new Date(midnight - DAY).toISOString()}&to=${new Date(midnight).toISOString()}`;
  const ends: string[] = [];
  page.on("request", (request) => {
    if (/\/api\/data\/(query|export)$/.test(request.url())) ends.push(request.postDataJSON().filters.endTime);
  });
  await open(page, account, hashOf([source], `${day}&by=hour&agg=sum`));
  await expect(page.locator(".chart-note")).toContainText("24 values, the sum of each hour");
  await page.getByRole("button", { name: "As curl" }).click();
  await expect(page.getByRole("dialog")).toContainText("T23:59:59.999999999Z");
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Export" }).click();
  const file = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save every point" }).click();
  const lines = readFileSync(await (await file).path(), "utf8")
    .trimEnd()
    .split("\n");
  expect(lines).toHaveLength(1 + 24 * 60);
  expect(ends.length).toBeGreaterThanOrEqual(3);
  expect(ends.every((end) => end.endsWith("T23:59:59.999999999Z"))).toBe(true);
});

test("a switch over a day is the share of the time that it was true", async ({ page }) => {
  const source = await createSource(account, { running: { type: "boolean" } });
  const now = Date.now();
  const steps = Array.from({ length: 8000 }, (_, n) => ({
    at: now - n * 10 * SECOND,
    values: { running: n % 4 === 0 },
  }));
  await send(account, source, steps);
  await open(page, account, hashOf([source], "r=24h", "running"));
  await expect(page.locator(".chart-note")).toContainText("of 8,000 points");
  await expect.poll(async () => (await measurePixels(page)).pixels).toBeGreaterThan(100);
  await page.locator(".plot").focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await expect(page.locator(".legend-value")).toContainText(/true 2\d(\.\d)? % of the time/);
});

test("the greatest and the least have the steps that averages have", async ({ page }) => {
  const source = await createSource(account, { v: { type: "number" } });
  const now = Date.now();
  const minutes = Array.from({ length: 8000 }, (_, n) => ({ at: now - n * MINUTE, values: { v: n % 5 } }));
  await send(account, source, minutes);
  const note = page.locator(".chart-note");
  for (const [aggregation, how] of [
    ["avg", "averaged by 5 min of"],
    ["max", "the greatest value of each 5 min"],
    ["min", "the least value of each 5 min"],
  ]) {
    await open(page, account, hashOf([source], `r=24h&agg=${aggregation}`));
    await expect(note).toContainText(how!);
    expect(await valuesDrawn(page.getByTestId("chart-points").innerText())).toBeGreaterThanOrEqual(288);
  }
  await page.getByRole("button", { name: "Export" }).click();
  const file = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save what is shown" }).click();
  const rows = readFileSync(await (await file).path(), "utf8").trimEnd().split("\n");
  expect(rows[0]).toBe("timestamp,dataSourceId,v");
  // All groups of five minutes except those at the ends have a 0 and an average of 2.
  expect(rows.slice(2, -1).every((row) => row.endsWith(",0"))).toBe(true);
  await visit(page, hashOf([source], "r=6h&agg=max"));
  // The oldest of them leaves the range a minute after the newest was made.
  await expect(note).toContainText(/3(59|60) points as they came/);
});

test("a switch of more points than an answer holds is a share of the whole range, whatever is chosen", async ({
  page,
}) => {
  const source = await createSource(account, { running: { type: "boolean" }, v: { type: "number" } });
  const now = Date.now();
  const steps = Array.from({ length: 30_000 }, (_, n) => ({
    at: now - n * 20 * SECOND,
    values: { running: n % 4 === 0, ...(n % 1000 === 0 ? { v: n } : {}) },
  }));
  await send(account, source, steps);
  const ink = async () => (await measurePixels(page)).from;
  for (const chosen of ["by=hour", "by=raw", "agg=max", "agg=sum&by=day"]) {
    await open(page, account, hashOf([source], `r=7d&${chosen}`, "running"));
    await expect(page.locator(".chart-note")).toContainText(/averaged by (15 min|5 min|minute) of 30,000 points/);
    await expect(page.locator(".remarks")).toContainText("share of time they were true");
    await expect(page.locator(".remarks")).not.toContainText("newest 10,000");
    await expect.poll(ink).toBeLessThan(0.03);
  }
  const running = `f=${source.bucketId}.${source.sourceId}.running`;
  await open(page, account, hashOf([source], `${running}&r=7d&by=hour&live=1`));
  await expect(page.locator(".chart-note")).toContainText(/ values, averaged by hour; the band/);
  const latest = page.locator("section[aria-label='Latest points'] tbody tr");
  await expect(latest).toHaveCount(50);
  await expect(latest.first()).toContainText("0true");
  await expect(page.locator(".legend tbody tr").nth(1)).toContainText("true");
  await expect(page.getByText("· following")).toBeVisible();
  await page.getByRole("button", { name: "Export" }).click();
  const file = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save every point" }).click();
  expect(readFileSync(await (await file).path(), "utf8").trimEnd().split("\n")).toHaveLength(30_001);
});

test.describe("in Los Angeles", () => {
  test.use({ timezoneId: "America/Los_Angeles" });

  test("days are those of the place, and a value stands within its day", async ({ page }) => {
    const source = await createSource(account, { v: { type: "number" } });
    const midnight = Math.floor(Date.now() / DAY) * DAY;
    const hours = Array.from({ length: 240 }, (_, n) => ({ at: midnight - n * HOUR - MINUTE, values: { v: n } }));
    await send(account, source, hours);
    await open(page, account, hashOf([source], "r=30d&by=day&agg=max"));
    const dayRequest = page.waitForRequest((request) => request.postDataJSON()?.groupBy === "day");
    await page.getByRole("button", { name: "Local" }).click();
    expect((await dayRequest).postDataJSON().timezone).toBe("America/Los_Angeles");
    await waitUntilSettled(page);
    await expect(page.locator(".chart-note")).toContainText("the greatest value of each day");
    await page.locator(".plot").focus();
    await page.keyboard.press("Home");
    // The oldest point is of the previous evening in local time; its day is drawn around noon.
    const oldest = new Date(midnight - 239 * HOUR - MINUTE).toLocaleDateString("sv-SE", {
      timeZone: "America/Los_Angeles",
    });
    await expect(page.locator(".legend-time")).toHaveText(oldest);
    await expect(page.locator(".legend caption")).toContainText(new RegExp(`^${oldest} 1[123]:`));
  });

  test("counts are in plain words", async ({ page }) => {
    const source = await createSource(account, { v: { type: "number" } });
    await send(account, source, [{ at: Date.now() - HOUR, values: { v: 1 } }]);
    await open(page, account, hashOf([source], "r=7d&agg=count&by=day"));
    await expect(page.locator(".chart-note")).toContainText("1 value, the number of points of each day");
  });
});
