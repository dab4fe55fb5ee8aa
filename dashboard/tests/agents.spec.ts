/** Agents: what the page says to put into their configurations is what the server takes. */
import { call, signUp } from "./support/api";
import { expect, open, test, visit } from "./support/test";

test("an agent is configured with a key of its own, and what it sends appears", async ({ page, service }) => {
  const account = await signUp(service.url);
  await call(account, "POST", "/api/buckets", { name: 'Plant "north"' });
  await open(page, account);
  // The guide offers it beside a source that is made by hand.
  await page.getByRole("link", { name: "connect an agent" }).click();
  await expect(page.getByRole("heading", { name: "Connect" })).toBeVisible();
  const first = page.locator("pre").first();
  await expect(first).toContainText("YOUR-WRITE-KEY");
  await expect(first).toContainText(`urls = ["${service.url}"]`);
  await page.getByRole("button", { name: "Create a write key" }).click();
  await expect(first).toContainText("svc_w_");
  const [key = ""] = /svc_w_[\w-]+/.exec(await first.innerText())!;
  const headers = { Authorization: `Token ${key}` };
  const bucket = encodeURIComponent('Plant "north"');
  const lines = await fetch(`${service.url}/api/v2/write?org=tidewatch&bucket=${bucket}&precision=ns`, {
    method: "POST",
    headers,
    body: `cpu,host=web-1 usage=21.5 ${Date.now()}000000\n`,
  });
  expect(lines.status).toBe(204);

  await page.getByRole("button", { name: "Prometheus" }).click();
  await expect(first).toContainText(`url: "${service.url}/api/v1/write"`);
  await expect(first).toContainText(`credentials: "${key}"`);

  await page.getByRole("button", { name: "OpenTelemetry" }).click();
  await expect(first).toContainText(`Authorization: "Bearer ${key}"`);
  const environment = await page.locator("pre").nth(1).innerText();
  const of = (name: string) => new RegExp(`${name}='(.*)'`).exec(environment)?.[1] ?? "";
  const [header = "", value = ""] = of("METRICS_HEADERS").split("=");
  const now = `${Date.now()}000000`;
  const gauge = { dataPoints: [{ timeUnixNano: now, asDouble: 1.5, attributes: [{ key: "room", value: { stringValue: "a" } }] }] };
  const metrics = await fetch(of("METRICS_ENDPOINT"), {
    method: "POST",
    headers: { "Content-Type": "application/json", [header]: decodeURIComponent(value) },
    body: JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name: "humidity", gauge }] }] }] }),
  });
  expect(metrics.status).toBe(200);

  await page.getByRole("button", { name: "MQTT" }).click();
  await expect(first).toContainText(`key = "${key}"`);

  // Grafana only reads.
  await page.getByRole("button", { name: "Grafana" }).click();
  await expect(first).toContainText("YOUR-READ-KEY");
  await page.getByRole("button", { name: "Create a read key" }).click();
  await expect(page.locator(".warn-box", { hasText: "The read key is in the configurations" })).toBeFocused();
  const byHand = await page.locator("pre").nth(1).innerText();
  const [, url = ""] = /URL +(\S+)/.exec(byHand)!;
  const [, name = ""] = /Header +(\S+)/.exec(byHand)!;
  const [, secret = ""] = /Value +(\S+)/.exec(byHand)!;
  const answer = await fetch(`${url}/api/v1/query?query=humidity`, { headers: { [name]: secret } });
  const { data } = (await answer.json()) as { data: { result: { metric: Record<string, string> }[] } };
  expect(data.result.map(({ metric }) => metric["room"])).toEqual(["a"]);

  await page.getByRole("navigation", { name: "Parts of the bucket" }).getByRole("link", { name: "Sources" }).click();
  await expect(page.getByRole("link", { name: "cpu", exact: true })).toBeVisible();
  await page.getByRole("link", { name: "humidity" }).click();
  await expect(page.getByRole("region", { name: "Dimensions", exact: true })).toContainText("room");
  // The source's own page leads there too.
  await page.getByRole("link", { name: "connect an agent" }).click();
  await expect(first).toContainText(key);
});

test("a key made among the keys is in the configurations until the page is loaded anew", async ({ page, service }) => {
  const account = await signUp(service.url);
  const { bucket } = await call<{ bucket: { _id: string } }>(account, "POST", "/api/buckets", { name: "Plant" });
  await open(page, account, `#/buckets/${bucket._id}/keys`);
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("gateway");
  await page.getByRole("button", { name: "Create key" }).click();
  const key = await page.locator(".secret-value code").innerText();
  await page.getByRole("button", { name: "I have copied it" }).click();
  await visit(page, `#/buckets/${bucket._id}/connect`);
  await expect(page.locator("pre").first()).toContainText(key);
  await page.reload();
  await expect(page.locator("pre").first()).toContainText("YOUR-WRITE-KEY");
});
