/** Rules: the editor refuses one that cannot fire, and shows its condition in words; one without verdicts is marked. */
import { call, createWorld, signUp, type Account, type World } from "./support/api";
import { expect, open, test, visit } from "./support/test";

interface Stored {
  _id: string;
  condition: string;
  parsedCondition: unknown;
  evaluation: { kind: string; parameters: unknown; inputs: unknown };
}

const read = async (account: Account, id: string) =>
  (await call<{ alertRule: Stored }>(account, "GET", `/api/alerts/${id}`)).alertRule;

async function addRule(account: Account, world: World, part: object): Promise<string> {
  const { alertRule } = await call<{ alertRule: Stored }>(account, "POST", "/api/alerts", {
    bucketId: world.bucketId,
    dataSourceId: world.sourceId,
    name: "Odd",
    naturalLanguageQuery: "vibration exceeds 5",
    evaluation: {
      kind: "threshold",
      intervalSeconds: 60,
      windowSeconds: 300,
      inputs: [{ key: "x", field: "vibration" }],
      parameters: { operator: "gt", value: 500 },
      ...part,
    },
  });
  return alertRule._id;
}

test("the form takes only what can fire, and its words are made of the parameters", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/rules/new?bucket=${world.bucketId}&source=${world.sourceId}`);
  await page.getByLabel("Name", { exact: true }).fill("Shakes");
  const create = page.getByRole("button", { name: "Create rule" });
  await create.click();
  await expect(page.getByText("Choose a field.")).toBeVisible();
  await expect(page.getByText("A number is needed here.")).toBeVisible();
  await page.getByLabel("Field", { exact: true }).selectOption("vibration");
  // What has been put right is no longer said to be wrong, and the focus stays with what is typed.
  await expect(page.getByText("Choose a field.")).toHaveCount(0);
  await expect(page.getByText("A number is needed here.")).toBeVisible();
  await page.getByLabel("Value (mm/s)").pressSequentially("5,5");
  await expect(page.getByLabel("Value (mm/s)")).toBeFocused();
  await expect(page.getByText("Must be a number such as 5.5, not 5,5.")).toBeVisible();
  await create.click();
  expect(page.url()).toContain("#/rules/new");
  await page.getByLabel("Value (mm/s)").fill("5.5");
  await page.getByLabel("Operator").selectOption("lte");
  await expect(page.getByLabel("The rule in words")).toHaveText("vibration is at most 5.5 mm/s");
  await create.click();
  await expect(page.getByRole("heading", { level: 1, name: "Shakes" })).toBeVisible();
  const id = /rules\/([0-9a-f]{24})/.exec(page.url())![1]!;
  expect(await read(account, id)).toMatchObject({
    condition: "vibration is at most 5.5 mm/s",
    parsedCondition: { field: "vibration", operator: "lte", value: 5.5 },
    evaluation: { kind: "threshold", parameters: { operator: "lte", value: 5.5 }, inputs: [{ field: "vibration" }] },
  });

  // Booleans have no order, and their values are true and false.
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Field", { exact: true }).selectOption("running");
  await expect(page.getByLabel("Operator").locator("option")).toHaveText(["choose one", "= is", "≠ is not"]);
  await page.getByLabel("Operator").selectOption("eq");
  await page.getByLabel("Value", { exact: true }).selectOption("false");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Shakes" })).toBeVisible();
  expect(await read(account, id)).toMatchObject({
    condition: "running is false",
    parsedCondition: { field: "running", operator: "eq", value: false },
  });

  // Ranges are for numbers only.
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByRole("button", { name: "Range" }).click();
  await page.getByLabel("Field", { exact: true }).selectOption("");
  await expect(page.getByLabel("Field", { exact: true }).locator("option")).toHaveText([
    "choose a field",
    "vibration (mm/s)",
  ]);
});

test("lengths are typed with their units, and steps with suggestions", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/rules/new?bucket=${world.bucketId}&source=${world.sourceId}`);
  await page.getByLabel("Name", { exact: true }).fill("Shakes");
  await page.getByLabel("Field", { exact: true }).selectOption("mode");
  await expect(page.getByLabel("Rows", { exact: true }).locator("option")).toHaveText([
    "points",
    "count",
    "distinct",
    "first",
    "last",
  ]);
  await page.getByLabel("Field", { exact: true }).selectOption("vibration");
  await page.getByLabel("Rows", { exact: true }).selectOption("p95");
  await page.getByLabel("Step", { exact: true }).fill("9x");
  await expect(page.getByText("Must be a step such as 15m, hour or day, not 9x.")).toBeVisible();
  await page.getByLabel("Step", { exact: true }).fill("10m");
  await page.getByLabel("Value (mm/s)").fill("5");
  await expect(page.getByLabel("Window", { exact: true })).toHaveValue("5m");
  await page.getByLabel("Window", { exact: true }).fill("an hour");
  await expect(page.getByText("Must be a length such as 90s, 5m or 2h, not an hour.")).toBeVisible();
  await page.getByLabel("Window", { exact: true }).fill("1h 30m");
  await page.getByLabel("Own window", { exact: true }).fill("2h");
  await page.getByLabel("Evaluated every", { exact: true }).fill("90");
  await expect(page.getByText("1 min 30 s")).toBeVisible();
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Shakes" })).toBeVisible();
  const id = /rules\/([0-9a-f]{24})/.exec(page.url())![1]!;
  expect(await read(account, id)).toMatchObject({
    evaluation: {
      intervalSeconds: 90,
      windowSeconds: 5_400,
      inputs: [{ field: "vibration", aggregation: "p95", groupBy: "10m", windowSeconds: 7_200 }],
    },
  });
});

test("words of another client that say something else are shown as such, and made anew", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const id = await addRule(account, world, {});
  await open(page, account, `#/rules/${id}`);
  await expect(page.getByText("vibration is above 500 mm/s")).toBeVisible();
  await expect(page.getByText("The words of this rule say something else: vibration > 5.")).toBeVisible();
  await page.getByRole("link", { name: "Edit", exact: true }).first().click();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.locator(".intro")).toHaveText("vibration is above 500 mm/s");
  await expect(page.getByText("say something else")).toHaveCount(0);
});

test("a step of another client that is not offered is kept", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const inputs = [
    { key: "x", field: "vibration", aggregation: "range", groupBy: "15m", fill: 0, timezone: "Asia/Kolkata" },
  ];
  const id = await addRule(account, world, { inputs });
  await open(page, account, `#/rules/${id}`);
  await expect(page.getByRole("cell", { name: "range by 15m" })).toBeVisible();
  await page.getByRole("link", { name: "Edit" }).first().click();
  await expect(page.getByLabel("Rows", { exact: true })).toHaveValue("range");
  await expect(page.getByLabel("Step", { exact: true })).toHaveValue("15m");
  await page.getByLabel("Name", { exact: true }).fill("Odder");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Odder" })).toBeVisible();
  expect(await read(account, id)).toMatchObject({ evaluation: { inputs } });
});

test("an inconclusive rule and one that no evaluator answers are not green", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  const id = await addRule(account, world, { parameters: { operator: ">", value: 5 } });
  await call(account, "POST", `/api/evaluations/${id}/verdict`, { outcome: "inconclusive" }, world.integrationKey);
  // Twelve minutes pass without a verdict.
  await page.route(/\/api\/(buckets\/[^/]*\/alerts|alerts\/[^/]*$)/, async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as { alertRules?: Record<string, unknown>[] };
    for (const rule of body.alertRules ?? []) {
      if (rule["_id"] !== id) rule["nextDueAt"] = new Date(Date.now() - 12.5 * 60_000).toISOString();
    }
    await route.fulfill({ response, json: body });
  });
  await open(page, account, "#/rules");
  const oddRow = page.getByRole("row", { name: /Odd/ });
  await expect(oddRow).toContainText("inconclusive");
  await expect(oddRow.locator(".pill.ok")).toHaveCount(0);
  await expect(page.getByRole("row", { name: /Pump 1 shakes/ })).toContainText("no evaluator has answered for 12 min");
  await visit(page, "#/");
  const troubled = page.getByRole("region", { name: "Rules that need attention" });
  await expect(troubled.getByRole("row", { name: /Odd/ })).toContainText("inconclusive");
  await expect(troubled.getByRole("row", { name: /Pump 1 shakes/ })).toContainText("firing");
  // The editor does not accept a condition that the evaluator does not support.
  await page.goto(`${account.url}/#/rules/${id}/edit`);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Choose how it is compared.")).toBeVisible();
});

test("a rule that clears is armed by time alone, and the page knows", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await call(account, "PATCH", `/api/alerts/${world.ruleId}`, {
    evaluation: {
      kind: "auto",
      intervalSeconds: 60,
      windowSeconds: 300,
      dwellSeconds: 30,
      inputs: [{ key: "x", field: "vibration" }],
      parameters: {},
    },
  });
  await page.clock.install();
  // A second verdict is due only after a minute, so the server's answer is moved back by that time. It is taken right
  // before the page opens, so that the rule is armed while the page is open, not before.
  const cleared = new Date().toISOString();
  let over = false;
  await page.route(/\/api\/buckets\/[^/]*\/alerts/, async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as { alertRules: Record<string, unknown>[] };
    Object.assign(body.alertRules[0]!, { state: over ? "armed" : "clearing", conditionClearedAt: cleared });
    await route.fulfill({ response, json: body });
  });
  await open(page, account, "#/rules");
  await expect(page.getByRole("row", { name: /Pump 1 shakes/ })).toContainText("clearing");
  over = true;
  await page.clock.runFor(31_500);
  await expect(page.getByRole("row", { name: /Pump 1 shakes/ })).toContainText("armed");
});

test("who knows that a rule has fired is seen by all, until it is armed", async ({ page, service }) => {
  const account = await signUp(service.url);
  const world = await createWorld(account);
  await open(page, account, `#/rules/${world.ruleId}`);
  await page.getByRole("button", { name: "Acknowledge" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Note")).toBeFocused();
  await dialog.getByLabel("Note").fill("Maria is on her way");
  await dialog.getByRole("button", { name: "Acknowledge" }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(page.locator(".figure", { hasText: "Maria is on her way" })).toContainText("Acknowledged");
  await visit(page, "#/rules");
  await expect(page.getByRole("row", { name: /Pump 1 shakes/ })).toContainText("acknowledged");
  // A rule that has not fired has nothing to acknowledge.
  const id = await addRule(account, world, {});
  await visit(page, `#/rules/${id}`);
  await expect(page.getByRole("heading", { level: 1, name: "Odd" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Acknowledge" })).toHaveCount(0);
});
