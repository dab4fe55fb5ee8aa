/** The cost of a board: a request for each panel is checked, times are only reported. */
import type { Page } from "@playwright/test";
import { call, createSource, signUp, type Account, type SourceRef } from "./support/api";
import { expect, open, test } from "./support/test";

const PANELS = 12;
const DAYS = 30;
const STEP_MS = 10_000;
const BATCH = 1_000;
const SENDERS = 4;
const ROUNDS = 5;

const report = (what: string, value: string) => console.log(`figure: ${what}: ${value}`);

/** Twelve sources with a month of a point each ten seconds: three million points. */
async function month(account: Account): Promise<SourceRef[]> {
  const sources: SourceRef[] = [];
  for (let n = 0; n < PANELS; n++) {
    sources.push(
      await createSource(account, { v: { type: "number" } }, { name: `Meter ${n}`, ...bucketOf(sources[0]) }),
    );
  }
  const end = Math.floor(Date.now() / STEP_MS) * STEP_MS;
  const count = (DAYS * 86_400_000) / STEP_MS;
  const batches = Array.from({ length: Math.ceil(count / BATCH) }, (_, batch) => batch);
  const bodyOf = ({ bucketId, sourceId: dataSourceId }: SourceRef, batch: number, place: number) => ({
    bucketId,
    dataPoints: Array.from({ length: Math.min(BATCH, count - batch * BATCH) }, (_, index) => {
      const n = batch * BATCH + index;
      const v = Math.round(1000 * (Math.sin(n / (700 + 50 * place)) + Math.sin(n / 7) / 5)) / 1000;
      return { dataSourceId, timestamp: new Date(end - (count - n) * STEP_MS).toISOString(), values: { v } };
    }),
  });
  const left = batches.flatMap((batch) => sources.map((source, place) => ({ source, batch, place })));
  const sender = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      await call(account, "POST", "/api/data/batch", bodyOf(next.source, next.batch, next.place));
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
  return sources;
}

const bucketOf = (first: SourceRef | undefined) => (first === undefined ? {} : { bucketId: first.bucketId });

/** From the first paint of the page to the frame in which the last chart has ink. */
function firstPaintToAllPainted(
  page: Page,
): Promise<{ painted: number; requests: number; bytes: number; serverMs: number }> {
  return page.evaluate(
    (panels) =>
      new Promise((resolve) => {
        const isPainted = (canvas: HTMLCanvasElement) => {
          const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
          return data.some((value, at) => at % 4 === 3 && value > 0);
        };
        const check = () => {
          const charts = [...document.querySelectorAll<HTMLCanvasElement>(".panel canvas")];
          if (charts.length < panels || !charts.every(isPainted)) return requestAnimationFrame(check);
          const first = performance.getEntriesByName("first-contentful-paint")[0]!.startTime;
          const asked = performance
            .getEntriesByType("resource")
            .filter(({ name }) => name.endsWith("/api/data/query")) as PerformanceResourceTiming[];
          const bytes = asked.reduce((sum, entry) => sum + entry.transferSize, 0);
          const waits = asked.map((entry) => entry.responseStart - entry.requestStart);
          resolve({ painted: performance.now() - first, requests: asked.length, bytes, serverMs: Math.max(...waits) });
          return undefined;
        };
        check();
      }),
    PANELS,
  );
}

test("a board of 12 panels over a month is painted, one request a panel", async ({ page, service }) => {
  test.setTimeout(600_000);
  const account = await signUp(service.url);
  const sources = await month(account);
  const last = sources.at(-1)!;
  const path = `/api/buckets/${last.bucketId}/sources/${last.sourceId}`;
  const { dataSource } = await call<{ dataSource: { stats: { totalDataPoints: number } } }>(account, "GET", path);
  // The oldest leave while the newest arrive: a bucket keeps a month.
  expect(dataSource.stats.totalDataPoints).toBeGreaterThan((0.99 * DAYS * 86_400_000) / STEP_MS);
  const panels = sources.map(({ bucketId, sourceId }, n) => ({
    title: `Meter ${n}`,
    kind: "lines",
    query: { bucketId, filters: { dataSourceIds: [sourceId], fields: ["v"] }, maxPoints: 1000 },
    ...{ x: (n % 4) * 3, y: Math.floor(n / 4) * 5, w: 3, h: 5 },
  }));
  const { board } = await call<{ board: { _id: string } }>(account, "POST", "/api/boards", {
    name: "Month",
    range: "30d",
    panels,
  });
  const took: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await open(page, account, `#/boards/${board._id}`);
    const { painted, requests, bytes, serverMs } = await firstPaintToAllPainted(page);
    expect(requests).toBe(PANELS);
    took.push(painted);
    report(
      `board of ${PANELS} panels over ${DAYS} d, round ${round + 1}`,
      `${Math.round(painted)} ms from first paint to all painted, ${Math.round(bytes / 1000)} KB, slowest answer ${Math.round(serverMs)} ms`,
    );
  }
  took.sort((a, b) => a - b);
  report(`board of ${PANELS} panels over ${DAYS} d, median`, `${Math.round(took[Math.floor(ROUNDS / 2)]!)} ms`);
});
