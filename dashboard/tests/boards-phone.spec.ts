/** Boards where panels stand one below the other have buttons in place of handles. Boards may have their own zone. */
import AxeBuilder from "@axe-core/playwright";
import { call, createWorld, signUp, type Account, type World } from "./support/api";
import { expect, open, test } from "./support/test";

interface Board {
  board: {
    _id: string;
    timezone: string | null;
    panels: { title: string; x: number; y: number; w: number; h: number }[];
  };
}

async function boardOf(account: Account, { bucketId, sourceId }: World, more: object = {}): Promise<string> {
  const filters = { dataSourceIds: [sourceId], fields: ["vibration"] };
  const query = { bucketId, filters, aggregation: "max", groupBy: "minute" };
  const panels = [
    { title: "Curve", kind: "lines", query, x: 0, y: 0, w: 6, h: 6 },
    { title: "Rows", kind: "table", query, x: 6, y: 0, w: 6, h: 6 },
    { title: "Bars", kind: "bars", query, x: 0, y: 6, w: 12, h: 4 },
  ];
  return (await call<Board>(account, "POST", "/api/boards", { name: "Hall", range: "6h", panels, ...more })).board._id;
}

const read = async (account: Account, id: string) => (await call<Board>(account, "GET", `/api/boards/${id}`)).board;

test("on a phone, buttons move and size panels", async ({ page, service }) => {
  const account = await signUp(service.url);
  const id = await boardOf(account, await createWorld(account));
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, account, `#/boards/${id}`);
  await expect(page.getByRole("button", { name: "Move Curve up" })).toHaveCount(0);
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await expect(page.getByRole("button", { name: /arrow keys/ })).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Move Curve up" })).toBeDisabled();
  await expect(page.getByRole("button", { name: "Move Bars down" })).toBeDisabled();
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  await page.getByRole("button", { name: "Move Rows up" }).click();
  await expect(page.getByText("Rows: column 1 to 6, row 1 to 6")).toBeAttached();
  const titles = () => page.locator(".panel-head h2").allTextContents();
  expect(await titles()).toEqual(["Rows", "Curve", "Bars"]);
  const curve = page.getByRole("region", { name: "Curve" });
  await curve.getByRole("button", { name: "Full width" }).click();
  await expect(curve.getByRole("button", { name: "Half width" })).toBeVisible();
  await expect(curve).toContainText("12 of 12 columns");
  await curve.getByRole("button", { name: "Shorter" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Board saved.")).toBeVisible();
  const { panels } = await read(account, id);
  const at = (title: string) => panels.find((panel) => panel.title === title);
  expect(at("Curve")).toMatchObject({ x: 0, y: 0, w: 12, h: 5 });
  // It made room for what is as wide as the board, and stays where it was put.
  expect(at("Rows")).toMatchObject({ x: 0, y: 6, w: 6, h: 6 });
  expect(at("Bars")!.y).toBeGreaterThanOrEqual(12);
});

test("a board shows times of its own zone, and its settings take none that is unknown", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const id = await boardOf(account, world, { timezone: "Asia/Tokyo" });
  await open(page, account, `#/boards/${id}`);
  await expect(page.getByText("Times of Asia/Tokyo")).toBeVisible();
  const rows = page.getByRole("region", { name: "Rows" });
  await expect(rows.getByRole("columnheader").first()).toHaveText("Time (UTC+09:00)");
  // The newest row and the end of the chart's range may be in different hours, so both are compared with the clock.
  const isRecent = (clock: string) =>
    expect(Math.abs(Date.now() - Date.parse(`${clock.replace(" ", "T")}+09:00`))).toBeLessThan(3_600_000);
  isRecent(await rows.locator("tbody td").first().innerText());
  const plot = page.getByRole("region", { name: "Curve" }).getByRole("group");
  await expect(plot).toHaveAccessibleName(/ to \d{4}-\d\d-\d\d \d\d:\d\d/);
  isRecent((await plot.getAttribute("aria-label"))!.split(" to ").at(-1)!);
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Time zone").fill("Asia/Atlantis");
  await expect(page.getByText("Must be the name of a time zone")).toBeVisible();
  await expect(page.getByRole("button", { name: "Done" })).toBeDisabled();
  await page.getByLabel("Time zone").fill("America/New_York");
  await page.getByLabel("Refresh every").fill("5m");
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Board saved.")).toBeVisible();
  expect(await read(account, id)).toMatchObject({ timezone: "America/New_York", refreshSeconds: 300 });
  await expect(rows.getByRole("columnheader").first()).toHaveText(/Time \(UTC−0[45]:00\)/);
});
