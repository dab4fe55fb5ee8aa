/**
 * Screenshots of every page at desktop and phone width in both themes, without assertions.
 * SCREENSHOTS is the directory; TIDEWATCH_URL, EMAIL and PASSWORD select another server with its data.
 */
import { join } from "node:path";
import { call, createWorld, pagesOf, signUp, type Account, type World } from "./support/api";
import { open, waitUntilSettled, test, visit } from "./support/test";

const SIZES = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

test("screenshots", async ({ browser, service }) => {
  test.setTimeout(600_000);
  const directory = process.env["SCREENSHOTS"] ?? "screenshots";
  const { account, world, field } = await targetOf(service.url);
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"] as const) {
      const context = await browser.newContext({ viewport, colorScheme, deviceScaleFactor: size === "phone" ? 2 : 1 });
      const page = await context.newPage();
      const capture = (name: string) =>
        page.screenshot({ path: join(directory, `${size}-${colorScheme}-${name}.png`), fullPage: true });
      for (const name of ["login", "signup"]) {
        await page.goto(`${account.url}/#/${name}`);
        await page.locator("h1").waitFor();
        await capture(name);
      }
      await open(page, account);
      for (const [name, hash] of Object.entries(pagesOf(world, field))) {
        await visit(page, hash);
        // uPlot draws in the frame after its data arrived.
        await page.evaluate(
          () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
        );
        await capture(name);
      }
      await visit(page, "#/buckets");
      await page.getByRole("button", { name: "New bucket" }).click();
      await capture("dialog");
      await page.keyboard.press("Escape");
      if (size === "phone") {
        await page.getByRole("button", { name: "Menu" }).click();
        await capture("menu");
      }
      await waitUntilSettled(page);
      await context.close();
    }
  }
});

/** The server to capture: the one of TIDEWATCH_URL, or a new one with a small world. */
async function targetOf(url: string): Promise<{ account: Account; world: World; field: string }> {
  const { TIDEWATCH_URL, EMAIL, PASSWORD } = process.env;
  if (TIDEWATCH_URL === undefined || EMAIL === undefined || PASSWORD === undefined) {
    const account = await signUp(url);
    return { account, world: await createWorld(account), field: "vibration" };
  }
  const account = { url: TIDEWATCH_URL, token: "", email: EMAIL, password: PASSWORD };
  const answer = await fetch(`${TIDEWATCH_URL}/api/auth/login`, {
    method: "POST",
    body: JSON.stringify({ email: EMAIL, password: PASSWORD }),
  });
  account.token = ((await answer.json()) as { token: string }).token;
  const { buckets } = await call<{ buckets: { _id: string }[] }>(account, "GET", "/api/buckets");
  const bucketId = buckets[0]!._id;
  const { dataSources } = await call<{ dataSources: { _id: string; schema: Record<string, { type: string }> }[] }>(
    account,
    "GET",
    `/api/buckets/${bucketId}/sources`,
  );
  const { alertRules } = await call<{ alertRules: { _id: string }[] }>(
    account,
    "GET",
    `/api/buckets/${bucketId}/alerts`,
  );
  const { webhooks } = await call<{ webhooks: { _id: string }[] }>(account, "GET", "/api/webhooks");
  const source = dataSources[0]!;
  const field = Object.entries(source.schema).find(([, { type }]) => type === "number")?.[0] ?? "";
  const world = {
    bucketId,
    sourceId: source._id,
    ruleId: alertRules[0]!._id,
    webhookId: webhooks[0]!._id,
    integrationKey: "",
  };
  return { account, world, field };
}
