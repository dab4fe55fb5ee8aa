/** The explorer: spikes stay visible, few requests are sent, live updates, and complete downloads. */
import { readFileSync } from "node:fs";
import { call, createSource, createWorld, signUp, POINTS, type Account, type World } from "./support/api";
import { expect, open, waitUntilSettled, test, visit } from "./support/test";

const hashOf = (world: World, rest: string, fields = ["vibration"]) =>
  `#/explore?${fields.map((field) => `f=${world.bucketId}.${world.sourceId}.${field}`).join("&")}&${rest}`;

async function sendMinutes(account: Account, world: World, minutes: number): Promise<void> {
  const now = Date.now();
  for (let start = 0; start < minutes; start += 1000) {
    const dataPoints = Array.from({ length: Math.min(1000, minutes - start) }, (_, index) => ({
      dataSourceId: world.sourceId,
      timestamp: new Date(now - (start + index + 200) * 60_000).toISOString(),
      values: { vibration: start + index === 5000 ? 99 : 2 },
    }));
    await call(account, "POST", "/api/data/batch", { bucketId: world.bucketId, dataPoints });
  }
}

test("a spike among averages is seen in the band", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await sendMinutes(account, world, 20_000);
  const queries: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/api/data/query")) queries.push(request.postData() ?? "");
  });
  await open(page, account, hashOf(world, "r=30d"));
  await expect(page.locator(".chart-note")).toContainText(
    "averaged by 30 min of 20,120 points; the band is min to max",
  );
  await expect(page.locator(".legend tbody tr")).toContainText("99");
  // One request for averages and band together, one for the table.
  expect(queries).toHaveLength(2);
  await visit(page, hashOf(world, "r=1h"));
  await expect(page.locator(".chart-note")).toContainText("as they came");
});

test("drag zooms, and Back comes back without a call", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, hashOf(world, "r=6h"));
  const box = (await page.locator(".u-over").boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.7, box.y + 80);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.9, box.y + 80, { steps: 5 });
  await page.mouse.up();
  await expect.poll(() => page.url()).toContain("from=");
  await waitUntilSettled(page);
  await expect(page.getByTestId("chart-points")).not.toHaveText(`${POINTS} points`);
  await page.goBack();
  await expect(page.getByTestId("chart-points")).toHaveText(`${POINTS} points`);
});

test("live follows new points", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, hashOf(world, "r=15m"));
  await page.getByRole("button", { name: "Live" }).click();
  await expect(page.getByText("following")).toBeVisible();
  await call(account, "POST", "/api/data", {
    bucketId: world.bucketId,
    dataSourceId: world.sourceId,
    values: { vibration: 77.5 },
  });
  await expect(page.locator(".legend-value")).toHaveText("77.5 mm/s");
  await page.getByRole("button", { name: "Live" }).click();
  await expect(page.getByText("following")).toHaveCount(0);
});

test("live goes on with the groups it began with", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await sendMinutes(account, world, 20_000);
  await open(page, account, hashOf(world, "r=30d&live=1"));
  const groups = Number.parseInt((await page.getByTestId("chart-points").innerText()).replace(",", ""), 10);
  await call(account, "POST", "/api/data", {
    bucketId: world.bucketId,
    dataSourceId: world.sourceId,
    values: { vibration: 512 },
  });
  await expect(page.locator(".legend tbody tr")).toContainText("512");
  await expect(page.locator(".chart-note")).toContainText("averaged by 30 min of 20,121 points");
  const after = Number.parseInt((await page.getByTestId("chart-points").innerText()).replace(",", ""), 10);
  expect(after - groups).toBeLessThanOrEqual(1);
});

test("switches are lines, texts are in the table", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, hashOf(world, "r=6h", ["vibration", "running", "mode"]));
  await expect(page.locator(".legend tbody tr")).toHaveCount(2);
  await expect(page.locator(".legend")).toContainText("true");
  await expect(page.getByRole("region", { name: "Latest points" }).last()).toContainText("auto");
  await visit(page, hashOf(world, "r=6h&by=hour", ["vibration", "running"]));
  await expect(page.locator(".legend tbody tr")).toHaveCount(2);
  await expect(page.getByText("Booleans are shown as raw points: they cannot be aggregated by this grouping.")).toBeVisible();
  await visit(page, hashOf(world, "r=6h", ["mode"]));
  await expect(page.getByText("Text fields are listed in the table below; a chart cannot draw them.")).toBeVisible();
});

test("fields that a chart has no lines for are said to be left out", async ({ page, service }) => {
  const account = await signUp(service.url);
  const names = Array.from({ length: 30 }, (_, index) => `f${index}`);
  const source = await createSource(account, Object.fromEntries(names.map((name) => [name, { type: "number" }])));
  const fields = names.map((name) => `f=${source.bucketId}.${source.sourceId}.${name}`);
  await open(page, account, `#/explore?${fields.join("&")}&r=24h`);
  await expect(page.locator(".legend tbody tr")).toHaveCount(24);
  const remark = page.getByText("A chart has 24 lines at most: 6 more fields of its address are left out.");
  await expect(remark).toBeVisible();
  await visit(page, `#/explore?${fields.slice(0, 24).join("&")}&r=24h`);
  await expect(remark).toHaveCount(0);
});

test("every point as a file of each format, and the query as curl", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await sendMinutes(account, world, 11_000);
  await open(page, account, hashOf(world, "r=30d"));
  await page.getByRole("button", { name: "As curl" }).click();
  await expect(page.getByRole("dialog")).toContainText(`curl -s '${service.url}/api/data/query'`);
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Export" }).click();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save every point" }).click();
  const lines = readFileSync(await (await download).path(), "utf8")
    .trimEnd()
    .split("\n");
  expect(lines[0]).toBe("timestamp,dataSourceId,_id,vibration,metadata");
  expect(lines).toHaveLength(1 + 11_000 + POINTS);
  for (const [format, extension] of [
    ["ndjson", "ndjson"],
    ["parquet", "parquet"],
    ["arrow", "arrows"],
  ]) {
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByLabel("Format").selectOption(format!);
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save what is shown" }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toMatch(new RegExp(`-\\d{8}T[\\d.]+Z\\.${extension}$`));
    expect(readFileSync(await file.path()).length).toBeGreaterThan(100);
  }
});

test("a view is its address", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, hashOf(world, "r=6h"));
  await page.getByLabel("Aggregation").selectOption("max");
  await page.getByLabel("Grouping", { exact: true }).selectOption("hour");
  await waitUntilSettled(page);
  await expect(page.locator(".chart-note")).toContainText("the greatest value of each hour");
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await waitUntilSettled(page);
  await expect(page.locator(".chart-note")).toContainText("the greatest value of each hour");
  await expect(page.getByLabel("Aggregation")).toHaveValue("max");
});

test("a range is compared with the week before, and asked for percentiles", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await sendMinutes(account, world, 12_000);
  const queries: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/api/data/query")) queries.push(request.postData() ?? "");
  });
  await open(page, account, hashOf(world, "r=24h"));
  await page.getByLabel("Comparison").selectOption("7d");
  await waitUntilSettled(page);
  const rows = page.locator(".legend tbody tr");
  await expect(rows).toHaveCount(2);
  await expect(rows.nth(1)).toContainText("7 d before");
  await expect(page.locator(".chart-note")).toContainText("the band is min to max");
  // Averages, band and the week before come with one request.
  const compared = queries.filter((query) => query.includes('"compare"'));
  expect(compared).toHaveLength(1);
  expect(JSON.parse(compared[0]!)).toMatchObject({ aggregation: ["avg", "min", "max"], compare: { offset: "7d" } });
  await rows.nth(1).getByRole("button").click();
  await expect(rows.nth(1)).toHaveClass("is-hidden");
  await page.getByLabel("Aggregation").selectOption("p95");
  await page.getByLabel("Grouping", { exact: true }).selectOption("15m");
  await waitUntilSettled(page);
  await expect(page.locator(".chart-note")).toContainText("the 95th percentile of each 15 min");
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await waitUntilSettled(page);
  await expect(page.getByLabel("Comparison")).toHaveValue("7d");
  await expect(rows).toHaveCount(2);
});
