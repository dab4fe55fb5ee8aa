/** Dimensions in panels of boards, in variables, and in inputs of rules. */
import { call, signUp, type Account, type SourceRef } from "./support/api";
import { cores } from "./support/cores";
import { expect, open, test, visit, waitUntilSettled } from "./support/test";

interface Board {
  board: { _id: string; panels: { title: string; query: Record<string, unknown> }[] };
}

const explore = ({ bucketId, sourceId }: SourceRef, more: string) =>
  `#/explore?f=${bucketId}.${sourceId}.usage&r=1h${more}`;

/** A board whose only panel shows the host that its variable says. */
async function hostBoard(account: Account, { bucketId, sourceId }: SourceRef): Promise<string> {
  const query = {
    bucketId,
    filters: { dataSourceIds: [sourceId], fields: ["usage"], dimensions: { host: "$host" } },
    aggregation: "avg",
    groupBy: "minute",
    groupByDimensions: ["host", "cpu"],
  };
  const body = {
    name: "Hosts",
    range: "1h",
    variables: [{ name: "host", default: "web-0" }],
    panels: [{ title: "Usage", kind: "lines", query, x: 0, y: 0, w: 12, h: 6 }],
  };
  return (await call<Board>(account, "POST", "/api/boards", body)).board._id;
}

test("groups become a panel, which the form groups and filters anew", async ({ page, service }) => {
  const account = await signUp(service.url);
  const source = await cores(account, 3, 2);
  await open(page, account, explore(source, "&group=host"));
  await page.getByRole("button", { name: "Add to board" }).click();
  await expect(page.getByLabel("Title of the panel")).toHaveValue("cpu · usage by host");
  await page.getByLabel("Name of the board").fill("Hosts");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("link", { name: "Boards" }).click();
  await page.getByRole("link", { name: "Hosts", exact: true }).click();
  const legend = page.locator(".panel-legend li");
  await expect(legend).toHaveText([/host=web-0/, /host=web-1/, /host=web-2/]);

  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("button", { name: "Edit cpu · usage by host" }).click();
  const form = page.getByRole("dialog");
  await expect(form.getByRole("checkbox", { name: "host", exact: true })).toBeChecked();
  await expect(form.getByLabel("Lines at most")).toHaveValue("20");
  await form.getByRole("checkbox", { name: "cpu", exact: true }).nth(1).check();
  await form.getByRole("button", { name: "Add a condition on a dimension" }).click();
  await form.getByLabel("Dimension", { exact: true }).selectOption("host");
  await form.getByRole("button", { name: "Done" }).click();
  await expect(form.getByText("Must have a value.")).toBeVisible();
  await form.getByRole("checkbox", { name: "web-2" }).check();
  await form.getByRole("button", { name: "Done" }).click();
  await expect(legend).toHaveText([/host=web-2, cpu=0/, /host=web-2, cpu=1/]);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Board saved.")).toBeVisible();
  const { boards } = await call<{ boards: Board["board"][] }>(account, "GET", "/api/boards");
  expect(boards[0]!.panels[0]!.query).toMatchObject({
    groupByDimensions: ["host", "cpu"],
    filters: { dimensions: { host: "web-2" } },
  });
});

test("a variable stands for a value of a dimension, and suggests others", async ({ page, service }) => {
  const account = await signUp(service.url);
  const source = await cores(account, 3, 1);
  const id = await hostBoard(account, source);
  await open(page, account, `#/boards/${id}`);
  const legend = page.locator(".panel-legend li");
  await expect(legend).toHaveText([/host=web-0, cpu=0/]);
  const variable = page.getByLabel("host", { exact: true });
  await expect(page.locator("datalist option")).toHaveCount(3);
  await variable.fill("web-2");
  await expect(legend).toHaveText([/host=web-2, cpu=0/]);
  await expect(page).toHaveURL(/v\.host=web-2/);
  // The form offers the variable among the values.
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("button", { name: "Edit Usage" }).click();
  await expect(page.getByRole("dialog").getByRole("checkbox", { name: "$host" }).last()).toBeChecked();
});

test("a rule takes some series of a source, and is tried out on these", async ({ page, service }) => {
  const account = await signUp(service.url);
  const source = await cores(account, 3, 1);
  await open(page, account, `#/rules/new?bucket=${source.bucketId}&source=${source.sourceId}`);
  await page.getByLabel("Name", { exact: true }).fill("web-2 is busy");
  await page.getByLabel("Field", { exact: true }).selectOption("usage");
  await page.getByLabel("Value (%)").fill("15");
  const panel = page.getByRole("region", { name: "On the past" });
  await expect(panel.getByText(/Would have fired/)).toBeVisible();
  await page.getByRole("button", { name: "Add a condition on a dimension" }).click();
  await page.getByLabel("Dimension", { exact: true }).selectOption("host");
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByText("A condition on a dimension has no value.")).toBeVisible();
  await page.getByRole("checkbox", { name: "web-0" }).check();
  await expect(panel.getByText("Would not have fired in the last 3 days")).toBeVisible();
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "web-2 is busy" })).toBeVisible();
  await expect(page.getByRole("group", { name: "Inputs" })).toContainText("host is web-0");
  const { alertRules } = await call<{ alertRules: { _id: string; evaluation: { inputs: object[] } }[] }>(
    account,
    "GET",
    `/api/buckets/${source.bucketId}/alerts`,
  );
  expect(alertRules[0]!.evaluation.inputs[0]).toMatchObject({ field: "usage", dimensions: { host: "web-0" } });
  await visit(page, `#/rules/${alertRules[0]!._id}/edit`);
  await waitUntilSettled(page);
  await expect(page.getByRole("checkbox", { name: "web-0" })).toBeChecked();
  // Rows of steps have groups, points have none.
  const eachHost = page.getByRole("group", { name: "Rows for each value of" }).getByRole("checkbox", { name: "host" });
  await expect(eachHost).toHaveCount(0);
  await page.getByLabel("Rows", { exact: true }).selectOption("avg");
  await eachHost.check();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("group", { name: "Inputs" })).toContainText(/avg by \S+, each host/);
  await visit(page, `#/rules/${alertRules[0]!._id}/edit`);
  await waitUntilSettled(page);
  await expect(eachHost).toBeChecked();
});
