/** The first steps: from an empty server to a chart. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "@playwright/test";
import { call, createWorld, signUp } from "./support/api";
import { startService } from "./support/service";
import { expect, open, waitUntilSettled, test, visit } from "./support/test";

const run = promisify(execFile);
const CLICKS_MAX = 15;

const focused = (page: Page) => page.evaluate(() => document.activeElement?.closest(".field")?.textContent ?? "");

test("from an empty server to a chart in few clicks", async ({ page }) => {
  const service = await startService("Free");
  let clicks = 0;
  const click = async (name: string, role: "button" | "link" = "button") => {
    clicks++;
    await page.getByRole(role, { name, exact: true }).click();
  };
  try {
    await page.goto(service.url);
    await expect(page.getByRole("heading", { name: "Create the first account" })).toBeVisible();
    await expect(page.getByRole("link", { name: "Log in" })).toHaveCount(0);
    await expect.poll(() => focused(page)).toContain("Your name");
    for (const text of ["Grace", "grace@example.com", "correct horse battery"]) {
      await page.keyboard.type(text);
      await page.keyboard.press("Tab");
    }
    await click("Create account");

    await click("Create a bucket", "link");
    await expect.poll(() => focused(page)).toContain("Name");
    await page.keyboard.type("Plant");
    await click("Create bucket");
    await click("Create a source", "link");
    await page.getByLabel("Name", { exact: true }).fill("Boiler");
    clicks++;
    await page.getByLabel("Name of field 1").fill("temperature");
    clicks++;
    // The added field gets the focus.
    await page.getByRole("button", { name: "Add a field" }).click();
    await expect(page.getByLabel("Name of field 2")).toBeFocused();
    await page.keyboard.type("pressure");
    await click("Create source");
    await expect(page.getByRole("navigation", { name: "Breadcrumb" })).toContainText("Plant");
    await expect(page.getByText("Waiting for the first point")).toBeVisible();

    await click("Create a write key");
    const send = page.locator("pre", { hasText: "/api/data'" });
    await expect(send).toContainText("TIDEWATCH_KEY='svc_w_");
    const command = await send.innerText();
    await page.getByRole("button", { name: "Copy" }).first().click();
    clicks++;
    // The message names what was copied.
    await page.getByRole("button", { name: "Python" }).click();
    await expect(page.getByRole("button", { name: "Copied" })).toHaveCount(0);
    await expect(page.locator("pre").first()).toContainText("svc_w_");

    await run("sh", ["-c", command]);
    await expect(page.getByText("The first point is in.")).toBeVisible();
    await expect(page.locator(".figure", { hasText: "Points" })).toContainText("1");
    // After going back, the last step is still shown.
    await visit(page, "#/");
    await expect(page.locator(".step.next")).toContainText("See it on a chart");
    await page.goBack();
    await click("Explore", "link");
    await waitUntilSettled(page);
    expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
    await visit(page, "#/");
    await expect(page.getByText("Getting started")).toHaveCount(0);

    // The server is no longer empty, and sign-up is open.
    await page.getByRole("button", { name: "Log out" }).click();
    await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
    await expect.poll(() => focused(page)).toContain("Email");
    await page.getByRole("link", { name: "Create an account" }).click();
    await expect.poll(() => focused(page)).toContain("Your name");
  } finally {
    await service.stop();
  }
});

test("where sign-up is closed it is not offered", async ({ page, service }) => {
  await page.route("**/api/auth/status", (route) => route.fulfill({ json: { open: false, first: false } }));
  await page.goto(`${service.url}/#/signup`);
  await expect(page.getByText("Sign-up is closed on this server.")).toBeVisible();
  await expect(page.getByLabel("Your name")).toHaveCount(0);
  await expect(page.getByRole("link", { name: "Create an account" })).toHaveCount(0);
});

test("the guide waits for the first point cheaply, and not at all while nobody looks", async ({ page, service }) => {
  const account = await signUp(service.url);
  const { bucket } = await call<{ bucket: { _id: string } }>(account, "POST", "/api/buckets", { name: "Plant" });
  const { dataSource } = await call<{ dataSource: { _id: string } }>(
    account,
    "POST",
    `/api/buckets/${bucket._id}/sources`,
    { name: "Boiler", schema: { t: { type: "number" } } },
  );
  await call(account, "POST", `/api/buckets/${bucket._id}/keys`, { name: "k", type: "write" });
  const requests: string[] = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/api/")) requests.push(pathname);
  });
  await page.clock.install();
  await open(page, account);
  await expect(page.locator(".step.next")).toContainText("Send a point");
  const source = `/api/buckets/${bucket._id}/sources/${dataSource._id}`;
  const polls = () => requests.filter((path) => path === source).length;
  await expect.poll(polls).toBeGreaterThanOrEqual(1);
  const began = Date.now();
  requests.length = 0;
  for (let second = 0; second < 9; second += 3) {
    await page.clock.runFor(3000);
    await expect.poll(polls).toBeGreaterThanOrEqual(second / 3 + 1);
  }
  // One request every three seconds, and the feed of changes. The page's clock goes on by itself as well.
  expect(polls()).toBeLessThanOrEqual(4 + Math.floor((Date.now() - began) / 3000));
  expect(requests.filter((path) => ![source, "/api/changes"].includes(path))).toEqual([]);
  const hide = (hidden: boolean) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await hide(true);
  requests.length = 0;
  await page.clock.runFor(60_000);
  expect(requests).toEqual([]);
  await call(account, "POST", "/api/data", { bucketId: bucket._id, dataSourceId: dataSource._id, values: { t: 1 } });
  await hide(false);
  // Changes by other clients are requested at once.
  await expect.poll(() => requests).toContain("/api/changes");
  await page.clock.runFor(3000);
  await expect(page.locator(".step.next")).toContainText("See it on a chart");
  await page.getByRole("button", { name: "Hide the guide" }).click();
  await expect(page.getByText("Getting started")).toHaveCount(0);
});

test("a key made among the keys is in the commands too", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/buckets/${world.bucketId}/keys`);
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("gateway");
  await page.getByRole("button", { name: "Create key" }).click();
  const key = await page.locator(".secret-value code").innerText();
  await page.getByRole("button", { name: "I have copied it" }).click();
  await visit(page, `#/buckets/${world.bucketId}/sources/${world.sourceId}`);
  for (const language of ["Node", "Go", "Arduino"]) {
    await page.getByRole("button", { name: language, exact: true }).click();
    await expect(page.locator("pre").first()).toContainText(key);
  }
  await page.reload();
  await waitUntilSettled(page);
  await expect(page.locator("pre").first()).toContainText("YOUR-WRITE-KEY");
});
