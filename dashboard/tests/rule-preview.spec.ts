/** What a rule looks at and what it would have done, under its form and on its page. */
import { call, createWorld, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

const HOUR_MS = 3_600_000;

test("the form draws the last day with the line, and says what would have fired", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const posted: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/backtest/verdicts")) posted.push(request.postData() ?? "");
  });
  await open(page, account, `#/rules/new?bucket=${world.bucketId}&source=${world.sourceId}`);
  const panel = page.getByRole("region", { name: "On the past" });
  const said = panel.getByRole("status").filter({ hasText: /[a-z]/ });
  await expect(panel).toContainText("Choose a field to see its last day");
  await expect(said).toContainText("when nothing above is missing");
  expect(posted).toEqual([]);

  // The points go from 1 to 3 and back.
  await page.getByLabel("Field", { exact: true }).selectOption("vibration");
  await expect(panel.locator(".plot canvas")).toBeVisible();
  await page.getByLabel("Value (mm/s)").fill("9");
  await expect(said).toContainText("Would not have fired in the last 3 days");
  await expect(panel).toContainText("line at 9 mm/s; no firing marked");
  await page.getByLabel("Value (mm/s)").fill("2.5");
  await expect(said).toContainText(/Would have fired (once|[2-9] times) in the last 3 days/);
  await expect(panel).toContainText(/line at 2.5 mm\/s; [1-9] firings? marked/);
  // It has no name yet, and is not stored.
  expect(posted).toHaveLength(2);
  expect(JSON.parse(posted[1]!)).toMatchObject({ evaluation: { parameters: { operator: "gt", value: 2.5 } } });

  // A rule that is due less often has more days to be tried on.
  await page.getByLabel("Evaluated every").fill("10m");
  await expect(said).toContainText("in the last 7 days");
  // What is no number asks nothing.
  await page.getByLabel("Value (mm/s)").fill("2,5");
  await expect(said).toContainText("when nothing above is missing");
  expect(posted).toHaveLength(3);

  await page.getByRole("button", { name: "Range" }).click();
  await page.getByLabel("Low end (mm/s)").fill("0");
  await page.getByLabel("High end (mm/s)").fill("2.5");
  await expect(panel).toContainText(/lines at 0 mm\/s and 2.5 mm\/s; [1-9] firings? marked/);
  await page.getByRole("button", { name: "Own evaluator" }).click();
  await page.getByLabel("Name of the kind").fill("mine");
  await expect(said).toContainText("It cannot be tried out here: your own evaluator decides");
});

test("a source without points, and a server that fails", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const path = `/api/buckets/${world.bucketId}/sources`;
  const schema = { rpm: { type: "number" } };
  const { dataSource } = await call<{ dataSource: { _id: string } }>(account, "POST", path, { name: "Fan", schema });
  await open(page, account, `#/rules/new?bucket=${world.bucketId}&source=${dataSource._id}`);
  const panel = page.getByRole("region", { name: "On the past" });
  await page.getByLabel("Field", { exact: true }).selectOption("rpm");
  await expect(panel).toContainText("No points in the last day.");
  await page.getByLabel("Value", { exact: true }).fill("5");
  await expect(panel).toContainText("Would not have fired in the last 3 days");
  await expect(panel).toContainText("all of them inconclusive");
  const busy = { error: "Service Unavailable", message: "the server is busy" };
  await page.route("**/backtest/verdicts", (route) => route.fulfill({ status: 503, json: busy }));
  await page.getByLabel("Value", { exact: true }).fill("6");
  await expect(panel).toContainText("It could not be tried out.");
  await expect(panel).toContainText("The server is busy.");
  await page.unroute("**/backtest/verdicts");
  await panel.getByRole("button", { name: "Try again" }).click();
  await expect(panel).toContainText("Would not have fired");
});

test("the page of a rule has its triggers, silences and annotations on the chart", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const { alertRule } = await call<{ alertRule: { _id: string } }>(account, "POST", "/api/alerts", {
    bucketId: world.bucketId,
    dataSourceId: world.sourceId,
    name: "Shakes",
    naturalLanguageQuery: "vibration exceeds 2.5",
    evaluation: {
      kind: "threshold",
      intervalSeconds: 60,
      windowSeconds: 300,
      inputs: [{ key: "x", field: "vibration" }],
      parameters: { operator: "gt", value: 2.5 },
    },
  });
  const verdict = `/api/evaluations/${alertRule._id}/verdict`;
  await call(account, "POST", verdict, { outcome: "met" }, world.integrationKey);
  const until = new Date(Date.now() + HOUR_MS).toISOString();
  await call(account, "POST", "/api/silences", { alertIds: [alertRule._id], until, reason: "new bearing" });
  await call(account, "POST", "/api/silences", { alertIds: [world.ruleId], until, reason: "another rule" });
  const at = new Date(Date.now() - HOUR_MS).toISOString();
  await call(account, "POST", "/api/annotations", { bucketId: world.bucketId, at, text: "oil changed" });
  await open(page, account, "#/rules");
  await visit(page, `#/rules/${alertRule._id}`);
  const day = page.getByRole("region", { name: "Last day" });
  await expect(day.locator(".plot canvas")).toBeVisible();
  await expect(day).toContainText("line at 2.5 mm/s; 1 trigger marked");
  await expect(day.getByRole("button", { name: "Silence: new bearing" })).toBeAttached();
  await expect(day.getByRole("button", { name: "Annotation: oil changed" })).toBeAttached();
  await expect(day.locator(".plot-note")).toHaveCount(2);
});
