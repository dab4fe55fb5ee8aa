/** Dimensions: set in a source's form, looked at on its page, picked, grouped, filtered and coloured in the explorer. */
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { call, createSource, send, signUp, type SourceRef } from "./support/api";
import { cores } from "./support/cores";
import { expect, open, test, visit, waitUntilSettled } from "./support/test";

const explore = ({ bucketId, sourceId }: SourceRef, more = "") =>
  `#/explore?f=${bucketId}.${sourceId}.usage&r=6h${more}`;

const labels = (page: Page) => page.locator(".legend tbody .name").allInnerTexts();

const strokeOf = (page: Page, label: string) =>
  page.locator(".legend tbody tr", { hasText: label }).locator(".swatch-line line").first().getAttribute("stroke");

/** Opens the form, and waits until it has the names. */
async function openForm(page: Page) {
  await page.getByRole("button", { name: /^Dimensions/ }).click();
  const dialog = page.getByRole("dialog", { name: "Dimensions" });
  await expect(dialog.getByRole("checkbox", { name: "host", exact: true })).toBeVisible();
  return dialog;
}

async function apply(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await waitUntilSettled(page);
}

test("a source's form says its dimensions, and that points fix them", async ({ page, service }) => {
  const account = await signUp(service.url);
  const { bucket } = await call<{ bucket: { _id: string } }>(account, "POST", "/api/buckets", { name: "Plant" });
  await open(page, account, `#/buckets/${bucket._id}/sources/new`);
  await page.getByLabel("Name", { exact: true }).fill("cpu");
  await page.getByLabel("Name of field 1").fill("usage");
  await page.getByLabel("Dimensions", { exact: true }).selectOption("named");
  await page.getByRole("button", { name: "Create source" }).click();
  await expect(page.getByLabel("Names of dimensions")).toBeFocused();
  await page.getByLabel("Names of dimensions").fill("host\n\n cpu ");
  await page.getByLabel("A point that is sent again").selectOption("skip");
  await page.getByRole("button", { name: "Create source" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "cpu" })).toBeVisible();
  await expect(page.getByText("points that are sent again are skipped")).toBeVisible();
  const [, sourceId = ""] = /sources\/([0-9a-f]{24})/.exec(page.url())!;
  const path = `/api/buckets/${bucket._id}/sources/${sourceId}`;
  const read = () =>
    call<{ dataSource: { dimensions: unknown; duplicates: string } }>(account, "GET", path).then((a) => a.dataSource);
  expect(await read()).toMatchObject({ dimensions: ["host", "cpu"], duplicates: "skip" });
  // Without points they can be changed, and with points the rest can.
  await visit(page, `#/buckets/${bucket._id}/sources/${sourceId}/edit`);
  await page.getByLabel("Dimensions", { exact: true }).selectOption("all");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Source “cpu” saved.")).toBeVisible();
  expect((await read()).dimensions).toBe("all");
  const source = { bucketId: bucket._id, sourceId };
  await send(account, source, [{ at: Date.now(), values: { usage: 1 }, metadata: { host: "a" } }]);
  await visit(page, `#/buckets/${bucket._id}/sources/${sourceId}/edit`);
  await expect(page.getByLabel("Dimensions", { exact: true })).toBeDisabled();
  await expect(page.getByText("They can be changed only while the source has no points.")).toBeVisible();
  await page.getByLabel("Description", { exact: true }).fill("all cores");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("all cores")).toBeVisible();
});

test("a source's page shows dimensions, the values of one, and series", async ({ page, service }) => {
  const account = await signUp(service.url);
  const { bucketId, sourceId } = await cores(account, 30, 1);
  await open(page, account, `#/buckets/${bucketId}/sources/${sourceId}`);
  await expect(page.locator(".figure", { hasText: "Series" })).toContainText("30");
  const dimensions = page.getByRole("region", { name: "Dimensions", exact: true });
  await expect(dimensions.getByRole("row", { name: /host/ })).toContainText("30");
  await page.getByRole("button", { name: "Values of host" }).click();
  const values = page.getByRole("region", { name: "Values of host" });
  await expect(values.getByText("1 to 10 of 30")).toBeVisible();
  await values.getByLabel("That begin with").fill("web-2");
  await expect(values.getByText("1 to 10 of 11")).toBeVisible();
  const series = page.getByRole("region", { name: "Series", exact: true });
  await expect(series.getByText("1 to 10 of 30")).toBeVisible();
  await series.getByRole("button", { name: "Next" }).click();
  await expect(series.getByText("11 to 20 of 30")).toBeVisible();
  await values.getByLabel("That begin with").fill("web-27");
  await values.getByRole("button", { name: "Series with web-27" }).click();
  await expect(series.locator("tbody tr")).toHaveCount(1);
  await expect(series.locator("tbody tr")).toContainText("cpu=0, host=web-27");
  await dimensions.getByRole("link", { name: "Chart with a line for each cpu" }).click();
  await waitUntilSettled(page);
  await expect.poll(() => labels(page)).toEqual(["cpu=0"]);
});

test("each group is a line, in the address, in files, in commands and beside the day before", async ({
  page,
  service,
}) => {
  const account = await signUp(service.url);
  const source = await cores(account);
  await open(page, account, explore(source));
  await expect(page.locator(".legend tbody tr")).toHaveCount(1);
  const form = await openForm(page);
  await form.getByRole("checkbox", { name: "host", exact: true }).check();
  await form.getByRole("checkbox", { name: "cpu", exact: true }).check();
  await apply(page);
  await expect.poll(() => labels(page)).toEqual([
    "host=web-0, cpu=0",
    "host=web-0, cpu=1",
    "host=web-1, cpu=0",
    "host=web-1, cpu=1",
  ]);
  expect(page.url()).toContain("group=host&group=cpu");
  await expect(page.locator(".legend tbody tr", { hasText: "host=web-1, cpu=1" })).toContainText("11 %");
  const strokes = await Promise.all((await labels(page)).map((label) => strokeOf(page, label)));
  expect(new Set(strokes).size).toBe(4);
  await page.reload();
  await waitUntilSettled(page);
  expect(await Promise.all((await labels(page)).map((label) => strokeOf(page, label)))).toEqual(strokes);
  await page.getByLabel("Comparison").selectOption("1d");
  await waitUntilSettled(page);
  await page.getByRole("button", { name: "As curl" }).click();
  const command = page.getByRole("dialog").locator("pre");
  await expect(command).toContainText('"groupByDimensions":["host","cpu"]');
  await expect(command).toContainText('"top":{"n":20,"by":"avg","field":"usage"}');
  await expect(command).toContainText('"compare":{"offset":"1d"}');
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Export" }).click();
  const [asked] = await Promise.all([
    page.waitForRequest((request) => request.url().endsWith("/api/data/export")),
    page.getByRole("button", { name: "Save what is shown" }).click(),
  ]);
  expect(asked.postDataJSON()).toMatchObject({ groupByDimensions: ["host", "cpu"], format: "csv" });
  await expect(page.getByText(/1 file saved/)).toBeVisible();
});

test("only the greatest groups are lines, and the page says so", async ({ page, service }) => {
  const account = await signUp(service.url);
  const source = await cores(account, 30, 1);
  await open(page, account, explore(source, "&group=host"));
  await expect(page.locator(".legend tbody tr")).toHaveCount(20);
  await expect(page.getByText("A line for each host: the 20 with the greatest avg of usage")).toBeVisible();
  const stroke = await strokeOf(page, "host=web-29");
  const form = await openForm(page);
  await form.getByLabel("Lines at most").fill("0");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(form.getByText("Must be an integer from 1 to 100.")).toBeVisible();
  await expect(form.getByLabel("Lines at most")).toBeFocused();
  await form.getByLabel("Lines at most").fill("2");
  await apply(page);
  await expect.poll(() => labels(page)).toEqual(["host=web-28", "host=web-29"]);
  expect(await strokeOf(page, "host=web-29")).toBe(stroke);
  // Another host pushes one out; the one that stays keeps its colour.
  const points = Array.from({ length: 60 }, (_, minute) => ({
    at: Date.now() - minute * 60_000,
    values: { usage: 5000 },
    metadata: { host: "a-new-one", cpu: "0" },
  }));
  await send(account, source, points);
  await page.getByRole("button", { name: "Reload" }).click();
  await expect.poll(() => labels(page)).toEqual(["host=a-new-one", "host=web-29"]);
  expect(await strokeOf(page, "host=web-29")).toBe(stroke);
  const least = await openForm(page);
  await least.getByLabel("Of each source, those with the").selectOption("least");
  await apply(page);
  await expect.poll(() => labels(page)).toEqual(["host=web-0", "host=web-1"]);
});

test("series are filtered by values that are found by how they begin, and by patterns", async ({ page, service }) => {
  const account = await signUp(service.url);
  const source = await cores(account, 30, 1);
  await open(page, account, explore(source, "&group=host"));
  const form = await openForm(page);
  await form.getByRole("button", { name: "Add a condition on a dimension" }).click();
  await form.getByLabel("Dimension", { exact: true }).selectOption("host");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(form.getByText("Must have a value.")).toBeVisible();
  const find = form.getByLabel("Find a value of host");
  await expect(find).toBeFocused();
  await expect(form.getByText("The first 12; type how another begins.")).toBeVisible();
  await page.keyboard.type("web-29");
  await expect(form.getByRole("group", { name: "Values of host" }).getByRole("checkbox")).toHaveCount(1);
  // Enter takes the only one, and does not send the form.
  await page.keyboard.press("Enter");
  await expect(form.getByRole("checkbox", { name: "web-29" })).toBeChecked();
  await form.getByRole("checkbox", { name: "web-10" }).check();
  await apply(page);
  await expect.poll(() => labels(page)).toEqual(["host=web-10", "host=web-29"]);
  await expect(page.getByText("Only series where host is web-29 or web-10.")).toBeVisible();
  expect(decodeURIComponent(page.url())).toContain('dim=["host","is","web-29","web-10"]');
  await expect(page.getByRole("region", { name: "Latest points" }).locator("tbody tr").first()).toContainText("web-");
  const again = await openForm(page);
  await again.getByLabel("Condition", { exact: true }).selectOption("matches");
  await again.getByLabel("Regular expression").fill("web-.");
  await apply(page);
  await expect(page.locator(".legend tbody tr")).toHaveCount(10);
  // What is wrong with a pattern is said by the server.
  const wrong = await openForm(page);
  await wrong.getByLabel("Regular expression").fill("web-(");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.locator(".chart-card .error-box")).toBeVisible();
  const absent = await openForm(page);
  await absent.getByLabel("Condition", { exact: true }).selectOption("absent");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByText("No points in this range.").first()).toBeVisible();
});

test("live groups stay the same lines", async ({ page, service }) => {
  const account = await signUp(service.url);
  const source = await cores(account, 3, 1);
  await open(page, account, explore(source, "&group=host&live=1&top=2"));
  await expect.poll(() => labels(page)).toEqual(["host=web-1", "host=web-2"]);
  const strokes = await Promise.all((await labels(page)).map((label) => strokeOf(page, label)));
  // Over the last moments alone, another host would be the greatest.
  await send(account, source, [{ at: Date.now(), values: { usage: 50 }, metadata: { host: "web-0", cpu: "0" } }]);
  await page.waitForResponse((response) => response.request().postData()?.includes('"top"') === true);
  await expect(page.getByText("following")).toBeVisible();
  expect(await labels(page)).toEqual(["host=web-1", "host=web-2"]);
  expect(await Promise.all((await labels(page)).map((label) => strokeOf(page, label)))).toEqual(strokes);
});

test("sources with other dimensions, or none, are lines beside", async ({ page, service }) => {
  const account = await signUp(service.url);
  const cpu = await cores(account);
  const now = Date.now();
  const other = async (name: string, dimensions: "all" | null) => {
    const source = await createSource(account, { usage: { type: "number" } }, { name, dimensions, bucketId: cpu.bucketId });
    await send(account, source, [{ at: now, values: { usage: 3 }, metadata: { site: "north" } }]);
    return source;
  };
  const [disk, plain] = [await other("disk", "all"), await other("plain", null)];
  const fields = [cpu, disk, plain].map(({ bucketId, sourceId }) => `f=${bucketId}.${sourceId}.usage`).join("&");
  await open(page, account, `#/explore?${fields}&r=6h&group=host&group=site`);
  await expect
    .poll(() => labels(page))
    .toEqual(["cpu · usage · host=web-0", "cpu · usage · host=web-1", "disk · usage · site=north", "plain · usage"]);
  await visit(page, `#/explore?${fields}&r=6h&group=host&dim=${encodeURIComponent('["host","is","web-0"]')}`);
  await expect.poll(() => labels(page)).toEqual(["cpu · usage · host=web-0"]);
  await expect(page.getByText("disk, plain: no point can match")).toBeVisible();
  await visit(page, `#/explore?${fields}&r=6h&group=host&merge=1`);
  await expect
    .poll(() => labels(page))
    .toEqual(["3 sources · usage · no host", "3 sources · usage · host=web-0", "3 sources · usage · host=web-1"]);
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`dimensions are accessible and fit a phone, ${colorScheme}`, async ({ page, service }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const account = await signUp(service.url);
    const source = await cores(account, 30, 1);
    const check = async () => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
      const root = page.locator("html");
      expect(await root.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBeLessThanOrEqual(0);
    };
    await open(page, account);
    for (const [width, height] of [[1280, 900], [360, 780]] as const) {
      await page.setViewportSize({ width, height });
      await visit(page, `#/buckets/${source.bucketId}/sources/${source.sourceId}`);
      await page.getByRole("button", { name: "Values of host" }).click();
      await expect(page.getByText("1 to 10 of 30").first()).toBeVisible();
      await check();
      await visit(page, explore(source, `&group=host&dim=${encodeURIComponent('["host","is","web-1"]')}`));
      await openForm(page);
      await expect(page.getByText("The first 12; type how another begins.")).toBeVisible();
      await check();
      const body = page.locator("dialog .dialog-body");
      expect(await body.evaluate((element) => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(0);
      await page.keyboard.press("Escape");
    }
  });
}
