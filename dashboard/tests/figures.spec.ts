/** The cost of the page: requests and bytes are checked, times are only reported. */
import type { Page } from "@playwright/test";
import { call, createSource, createWorld, pagesOf, send, signUp } from "./support/api";
import { startService } from "./support/service";
import { expect, open, test, visit } from "./support/test";

const FIRST_VISIT_BYTES_MAX = 150_000;
const ROUNDS = 7;

const report = (what: string, value: string) => console.log(`figure: ${what}: ${value}`);

const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Runs in the page: clicks, and returns the time in ms until another view is displayed and painted. */
function clickToPainted(button: Node): Promise<number> {
  const shown = () => document.querySelector(".chart-note")?.textContent?.split(" · ")[0];
  const before = shown();
  const began = performance.now();
  (button as HTMLButtonElement).click();
  return new Promise((resolve) => {
    const checkView = () => {
      const now = shown();
      const isPainted = now !== undefined && now !== before;
      requestAnimationFrame(isPainted ? () => resolve(performance.now() - began) : checkView);
    };
    checkView();
  });
}

/** Counts the bytes received over the network from now on, including response heads. */
async function countReceived(page: Page): Promise<() => number> {
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  session.on("Network.loadingFinished", (event) => {
    bytes += event.encodedDataLength;
  });
  await session.send("Network.enable");
  return () => bytes;
}

test("a first visit with a chart is small", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const bytes = await countReceived(page);
  await open(page, account, `#/explore?f=${world.bucketId}.${world.sourceId}.vibration&r=6h`);
  report("first visit, compressed, with a chart", `${Math.round(bytes() / 1000)} KB`);
  expect(bytes()).toBeLessThanOrEqual(FIRST_VISIT_BYTES_MAX);
});

test("open pages use nothing of the Free plan", async ({ page }) => {
  const service = await startService("Free");
  try {
    const account = await signUp(service.url);
    const world = await createWorld(account);
    const used = async () => {
      const { overview } = await call<{ overview: { usage: { apiCallsThisMonth: number } } }>(
        account,
        "GET",
        "/api/analytics/overview",
      );
      return overview.usage.apiCallsThisMonth;
    };
    const before = await used();
    await open(page, account);
    for (const hash of Object.values(pagesOf(world, "vibration"))) await visit(page, hash);
    const calls = (await used()) - before;
    report("calls that an open page of any kind counts", String(calls));
    // Less than none if the month has turned, with which the count begins anew.
    expect(calls).toBeLessThanOrEqual(0);
  } finally {
    await service.stop();
  }
});

test("ranges of 13 lines are painted", async ({ page, service }) => {
  const account = await signUp(service.url);
  const names = Array.from({ length: 13 }, (_, n) => `f${n}`);
  const source = await createSource(account, Object.fromEntries(names.map((name) => [name, { type: "number" }])));
  const now = Date.now();
  // Half a day at 1 s: more than half a million values.
  const points = Array.from({ length: 43_200 }, (_, n) => ({
    at: now - n * 1_000,
    values: Object.fromEntries(names.map((name, field) => [name, Math.round(1000 * Math.sin(n / (20 + field))) / 10])),
  }));
  await send(account, source, points);
  const fields = names.map((name) => `f=${source.bucketId}.${source.sourceId}.${name}`).join("&");
  await open(page, account, `#/explore?${fields}&r=1h`);
  const took: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const label of ["6h: the last 6 hours", "24h: the last 24 hours"]) {
      const button = page.getByRole("button", { name: label });
      took.push(await button.evaluate(clickToPainted));
    }
  }
  report("click to painted, 560,000 values behind 13 lines, median", `${Math.round(median(took))} ms`);
  expect(took).toHaveLength(2 * ROUNDS);
});
