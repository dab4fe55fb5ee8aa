/** The operator's page: its token, the organizations, one machine, and a cluster by a prepared answer. */
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { signUp } from "./support/api";
import { OPERATOR_TOKEN, startService } from "./support/service";
import { expect, open, test, waitUntilSettled } from "./support/test";

/** Enters the token as the operator does. */
async function enter(page: Page, url: string, hash = "#/operator", token = OPERATOR_TOKEN): Promise<void> {
  await page.goto(`${url}/${hash}`);
  await page.getByLabel("Operator token", { exact: true }).fill(token);
  await page.keyboard.press("Enter");
}

/** A cluster of three nodes, of which one is leaving; two shards have no owner. */
function clusterOf(shards: number) {
  const nodes = ["10.0.0.1:7946", "10.0.0.2:7946", "10.0.0.3:7946"].map((address, index) => ({
    id: `5f1e0c4a9b7d3e2${index}`,
    address,
    shards: 0,
    leaseSeconds: 5,
    state: index === 2 ? "leaving" : "member",
    isThis: index === 0,
  }));
  const unowned = new Set([17, 42]);
  return {
    clustered: true,
    readAt: new Date().toISOString(),
    commitsReplicated: true,
    weakness: null as string | null,
    unownedShards: unowned.size,
    nodes,
    shards: Array.from({ length: shards }, (_, number) => {
      const owner = unowned.has(number) ? undefined : nodes[number % nodes.length];
      if (owner !== undefined) owner.shards++;
      return {
        number,
        epoch: 3 + (number % 5),
        owner: owner?.id ?? null,
        lastSequence: 48_211 + number,
        coveredSequence: 48_000,
        tailBytes: 91_250 * (number + 1),
        root: number === 5 ? null : `shard-${number}/root-${4000 + number}`,
      };
    }),
  };
}

const answer = (page: Page, cluster: ReturnType<typeof clusterOf>) =>
  page.route("**/api/operator/cluster", (route) =>
    route.request().headers()["authorization"] === undefined ? route.continue() : route.fulfill({ json: { cluster } }),
  );

test("the token opens the page, stays in its memory, and is no session", async ({ page, service }) => {
  const account = await signUp(service.url);
  await page.goto(`${service.url}/#/login`);
  await page.getByRole("link", { name: "Operator" }).click();
  await page.getByLabel("Operator token", { exact: true }).fill("another-token-of-somebody");
  await page.keyboard.press("Enter");
  await expect(page.getByText("This is not the token of this server")).toBeVisible();
  await open(page, account, "#/operator");
  const sent: Record<string, string>[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/api/operator/")) void request.allHeaders().then((headers) => sent.push(headers));
  });
  await enter(page, service.url);
  await expect(page.getByRole("heading", { level: 1, name: "Operator" })).toBeFocused();
  await expect(page.getByRole("heading", { name: "One machine" })).toBeVisible();
  await expect(page.getByText(/^[\d,]+$/).first()).toBeVisible();
  await expect.poll(() => sent.length).toBeGreaterThan(0);
  for (const headers of sent) expect(headers["cookie"]).toBeUndefined();
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href]));
  expect(kept).not.toContain(OPERATOR_TOKEN);
  // Who is logged in still is.
  await page.getByRole("link", { name: "tidewatch: go to the overview" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
  await page.goBack();
  await page.getByRole("button", { name: "Forget the token" }).click();
  await expect(page.getByLabel("Operator token", { exact: true })).toBeFocused();
});

test("plans of organizations are changed", async ({ page, service }) => {
  await signUp(service.url, "Ada", "Lighthouse");
  await enter(page, service.url, "#/operator/organizations");
  const row = page.getByRole("row", { name: /Lighthouse/ });
  // The newest organization stands on the last page, and other tests have created pages of them.
  await expect(async () => {
    if ((await row.count()) === 0) await page.getByRole("button", { name: "Next" }).click({ timeout: 1_000 });
    await expect(row).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: 30_000 });
  await expect(row).toContainText("Enterprise");
  await row.getByRole("button", { name: "Change plan of Lighthouse" }).click();
  await page.getByLabel("Plan of Lighthouse").selectOption("Pro");
  await page.getByRole("dialog").getByRole("button", { name: "Change plan" }).click();
  await expect(row).toContainText("Pro");
});

test("a cluster: what is wrong stands first, and an old view says since when", async ({ page, service }) => {
  await page.clock.install();
  await answer(page, clusterOf(64));
  await enter(page, service.url);
  await expect(page.getByText("2 shards without an owner: 17, 42.")).toBeVisible();
  const shards = page.getByRole("group", { name: "Shards" }).locator("tbody tr");
  await expect(shards.first()).toContainText("no owner");
  await expect(shards.first()).toContainText("17");
  await expect(page.getByRole("group", { name: "Nodes" }).locator("tbody tr")).toHaveCount(3);
  await expect(page.getByRole("row", { name: /10.0.0.3/ }).first()).toContainText("leaving");
  await page.unroute("**/api/operator/cluster");
  await page.route("**/api/operator/cluster", (route) => route.abort());
  await page.clock.runFor(6000);
  await expect(page.getByText(/Not up to date since/)).toBeVisible();
  await expect(shards.first()).toContainText("no owner");
  await page.unroute("**/api/operator/cluster");
  const weak = { ...clusterOf(64), commitsReplicated: false, weakness: "synchronous_standby_names is empty" };
  await answer(page, weak);
  await page.clock.runFor(6000);
  await expect(page.getByRole("alert")).toContainText("Synchronous_standby_names is empty");
  await expect(page.getByText(/Not up to date since/)).toHaveCount(0);
});

test("4,096 shards are found through", async ({ page, service }) => {
  await answer(page, clusterOf(4096));
  await enter(page, service.url);
  const shards = page.getByRole("group", { name: "Shards" }).locator("tbody tr");
  await expect(shards).toHaveCount(50);
  const began = Date.now();
  await page.getByLabel("Search shards").fill("4095");
  await expect(shards.first()).toContainText("4095");
  expect(Date.now() - began).toBeLessThan(10_000);
});

test("without an operator's token the page says what to set", async ({ page }) => {
  const service = await startService("Free", null);
  await page.goto(`${service.url}/#/operator`);
  await expect(page.getByText("the server's configuration has no")).toBeVisible();
  await expect(page.getByLabel("Operator token", { exact: true })).toHaveCount(0);
  await service.stop();
});

for (const [colorScheme, width] of [
  ["light", 1280],
  ["dark", 1280],
  ["light", 360],
  ["dark", 360],
] as const) {
  test(`readable in ${colorScheme}, ${width} px wide`, async ({ page, service }) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await signUp(service.url);
    await answer(page, clusterOf(64));
    await page.goto(`${service.url}/#/login`);
    await check(page, `${colorScheme}-${width}-login`);
    await page.goto(`${service.url}/#/operator`);
    await check(page, `${colorScheme}-${width}-token`);
    await enter(page, service.url);
    await check(page, `${colorScheme}-${width}-cluster`);
    await page.getByRole("link", { name: "Organizations" }).click();
    await check(page, `${colorScheme}-${width}-organizations`);
  });
}

async function check(page: Page, name: string): Promise<void> {
  await waitUntilSettled(page);
  const directory = process.env["SCREENSHOTS"];
  if (directory !== undefined) await page.screenshot({ path: `${directory}/operator-${name}.png`, fullPage: true });
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`), name).toEqual([]);
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(overflow, name).toBeLessThanOrEqual(0);
}
