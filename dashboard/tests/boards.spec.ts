/** Boards: made from the explorer, edited by pointer and keyboard, saved with their version, shared, and on a phone. */
import AxeBuilder from "@axe-core/playwright";
import { call, createWorld, signUp, type Account, type World } from "./support/api";
import { expect, open, test } from "./support/test";

interface Board {
  board: { _id: string; name: string; version: number; panels: { title: string; x: number; y: number; w: number; h: number }[] };
}

const place = (x: number, y: number, w: number, h: number) => ({ x, y, w, h });

/** A board with a panel of each kind. */
async function boardOf(account: Account, { bucketId, sourceId }: World): Promise<string> {
  const filters = { dataSourceIds: ["$source"], fields: ["vibration"] };
  const grouped = { bucketId, filters, aggregation: "max", groupBy: "minute" };
  const thresholds = [{ value: 0, level: "critical" }];
  const body = {
    name: "Control room",
    range: "6h",
    variables: [{ name: "source", default: sourceId }],
    panels: [
      { title: "Curve", kind: "lines", query: { bucketId, filters, maxPoints: 1000 }, ...place(0, 0, 6, 6) },
      { title: "Bars", kind: "bars", query: grouped, ...place(6, 0, 6, 6) },
      { title: "Last", kind: "stat", query: { ...grouped, aggregation: "last", groupBy: "all" }, unit: "mm/s", thresholds, ...place(0, 6, 3, 4) },
      { title: "Rows", kind: "table", query: grouped, ...place(3, 6, 5, 4) },
      { title: "States", kind: "states", query: grouped, thresholds, ...place(8, 6, 4, 4) },
      { title: "Rules", kind: "rules", query: { bucketId }, ...place(0, 10, 12, 3) },
    ],
  };
  return (await call<Board>(account, "POST", "/api/boards", body)).board._id;
}

/** Pairs of panels of which one covers the other. */
function overlaps(panels: Board["board"]["panels"]): string[] {
  return panels.flatMap((a, index) =>
    panels
      .slice(index + 1)
      .filter((b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
      .map((b) => `${a.title} and ${b.title}`),
  );
}

const read = (account: Account, id: string) => call<Board>(account, "GET", `/api/boards/${id}`).then(({ board }) => board);

test("what the explorer shows becomes a panel with one click", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h`);
  await page.getByRole("button", { name: "Add to board" }).click();
  await page.getByLabel("Name of the board").fill("Hall 3");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("link", { name: "Boards" }).click();
  await page.getByRole("link", { name: "Hall 3", exact: true }).click();
  const panel = page.getByRole("region", { name: /vibration/ });
  await expect(panel.locator("canvas")).toBeVisible();
  await expect(panel.locator(".panel-legend strong")).not.toHaveText("–");
});

test("each kind of panel shows its values, one request a panel", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const id = await boardOf(account, world);
  let queries = 0;
  page.on("request", (request) => (queries += request.url().endsWith("/api/data/query") ? 1 : 0));
  await open(page, account, `#/boards/${id}`);
  await expect(page.getByRole("region", { name: "Curve" }).locator("canvas")).toBeVisible();
  await expect(page.getByRole("region", { name: "Bars" }).getByRole("img")).toHaveAccessibleName(/newest Pump 1 · vibration [\d.]+/);
  const last = page.getByRole("region", { name: "Last" });
  await expect(last).toContainText("mm/s");
  await expect(last.locator(".stat.critical")).toBeVisible();
  await expect.poll(() => page.getByRole("region", { name: "Rows" }).locator("tbody tr").count()).toBeGreaterThan(10);
  await expect(page.getByRole("region", { name: "States" })).toContainText("critical");
  await expect(page.getByRole("region", { name: "Rules" })).toContainText("Pump 1 shakes");
  expect(queries).toBe(5);
  await page.getByLabel("Range", { exact: true }).selectOption("1h");
  await expect(page).toHaveURL(/r=1h/);
  for (const theme of ["Dark theme", "Light theme"]) {
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
    await page.getByRole("button", { name: theme }).click();
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const boxes = await Promise.all(
    ["Curve", "Bars", "Last"].map(async (name) => (await page.getByRole("region", { name }).boundingBox())!),
  );
  expect(boxes[0]!.y + boxes[0]!.height).toBeLessThanOrEqual(boxes[1]!.y);
  expect(boxes[1]!.y + boxes[1]!.height).toBeLessThanOrEqual(boxes[2]!.y);
});

test("panels are moved, resized, edited and saved, and another's change is not lost", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const id = await boardOf(account, world);
  await open(page, account, `#/boards/${id}`);
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  const move = page.getByRole("button", { name: "Move Last: arrow keys" });
  await move.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByText("Last: column 2 to 4, row 8 to 11")).toBeAttached();
  await page.getByRole("button", { name: "Resize Rules: arrow keys" }).focus();
  await page.keyboard.press("ArrowLeft");
  const handle = (await page.getByRole("button", { name: "Move Curve: arrow keys" }).boundingBox())!;
  await page.mouse.move(handle.x + 5, handle.y + 5);
  await page.mouse.down();
  await page.mouse.move(handle.x + 5, handle.y + 5 + 48 * 3, { steps: 5 });
  await page.mouse.up();
  await page.getByRole("button", { name: "Edit Curve" }).click();
  await page.getByLabel("Title").fill("The curve");
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Remove States" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Board saved.")).toBeVisible();
  // Not what has taken the place of the button: a second press must do nothing else.
  await expect(page.getByRole("button", { name: "Reload" })).toBeFocused();
  const saved = await read(account, id);
  expect(saved.version).toBe(2);
  const at = (title: string) => saved.panels.find((panel) => panel.title === title);
  // What a moved panel would cover has made room, below it and below each other.
  expect(at("The curve")).toMatchObject(place(0, 3, 6, 6));
  expect(at("Last")).toMatchObject(place(1, 9, 3, 4));
  expect(at("Rows")).toMatchObject(place(3, 13, 5, 4));
  expect(at("Rules")).toMatchObject(place(0, 17, 11, 3));
  expect(at("States")).toBeUndefined();
  expect(overlaps(saved.panels)).toEqual([]);

  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("button", { name: "Remove Rows" }).click();
  await call(account, "PATCH", `/api/boards/${id}`, { name: "Theirs" });
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert")).toContainText("Somebody else has changed this board");
  await page.getByRole("button", { name: "Discard mine and show theirs" }).click();
  await expect(page.getByRole("heading", { name: "Theirs" })).toBeVisible();
  expect((await read(account, id)).panels).toHaveLength(5);
});

test("a link shows the board to somebody without a log-in, and a wall has no navigation", async ({ page, browser, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const id = await boardOf(account, world);
  await open(page, account, `#/boards/${id}`);
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByRole("button", { name: "Create a link" }).click();
  const link = (await page.getByRole("dialog").getByText(/#\/shared\//).textContent())!.trim();
  const stranger = await browser.newContext();
  const other = await stranger.newPage();
  await other.goto(link);
  await expect(other.getByRole("heading", { name: "Control room" })).toBeVisible();
  await expect(other.getByRole("region", { name: "Last" })).toContainText("mm/s");
  await expect(other.getByRole("region", { name: "Rules" })).toContainText("Pump 1 shakes");
  await expect(other.getByRole("navigation")).toHaveCount(0);
  await page.getByRole("button", { name: /^Remove the link/ }).click();
  await expect(page.getByText("There are no links to this board.")).toBeVisible();
  await other.reload();
  await expect(other.getByText("This link shows nothing any more")).toBeVisible();
  await stranger.close();
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Wall" }).click();
  await expect(page.getByRole("navigation", { name: "Main" })).toBeHidden();
  await expect(page.getByRole("region", { name: "Last" })).toContainText("mm/s");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("navigation", { name: "Main" })).toBeVisible();
});

test("a panel needs a bucket, and what is wrong in its form is said", async ({ page, service }) => {
  const account = await signUp(service.url);
  const { board } = await call<Board>(account, "POST", "/api/boards", { name: "Early", range: "1h", panels: [] });
  await open(page, account, `#/boards/${board._id}`);
  await page.getByRole("button", { name: "Add a panel" }).first().click();
  await expect(page.getByRole("dialog")).toContainText("there is none yet");
  await page.keyboard.press("Escape");
  await createWorld(account);
  await page.reload();
  await page.getByRole("button", { name: "Add a panel" }).first().click();
  await page.getByLabel("Decimals").fill("1.5");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByText("Must be an integer from 0 to 10, or empty.")).toBeVisible();
  await expect(page.getByLabel("Decimals")).toBeFocused();
  await page.getByLabel("Decimals").fill("1");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(page.locator(".panel")).toHaveCount(1);
  // The button that opened the form has gone with the empty board.
  await expect(page.getByRole("button", { name: "Add a panel" })).toBeFocused();
});
