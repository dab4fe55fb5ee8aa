/** The base of all browser tests: one service for each worker, and a page whose errors fail the test. */
import { test as base, expect, type Page } from "@playwright/test";
import type { Account } from "./api";
import { startService, type Service } from "./service";

interface WorkerFixtures {
  service: Service;
}

interface TestFixtures {
  /** Violations of the content security policy, and script errors; the test fails unless it is empty at the end. */
  faults: string[];
}

export const test = base.extend<TestFixtures, WorkerFixtures>({
  service: [
    async ({}, use) => {
      const service = await startService();
      await use(service);
      await service.stop();
    },
    { scope: "worker" },
  ],
  faults: [
    async ({ page }, use) => {
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
      page.on("console", (message) => {
        if (/Content.Security.Policy/i.test(message.text())) faults.push(`policy: ${message.text()}`);
      });
      page.on("dialog", (dialog) => {
        faults.push(`a script ran: ${dialog.message()}`);
        void dialog.dismiss();
      });
      await page.exposeFunction("noteViolation", (text: string) => faults.push(`policy: ${text}`));
      await page.addInitScript(() => {
        document.addEventListener("securitypolicyviolation", (event) => {
          (window as unknown as { noteViolation: (text: string) => void }).noteViolation(
            `${event.violatedDirective} ${event.blockedURI}`,
          );
        });
      });
      await use(faults);
      expect(faults).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };

/** Stores what a log-in stores: the cookie and its expiry. */
export async function logInAs(page: Page, { url, token }: Account): Promise<void> {
  const cookie = { name: "tidewatch_session", value: token, url, httpOnly: true, sameSite: "Strict" as const };
  await page.context().addCookies([cookie]);
  await page.addInitScript(() => {
    if (location.protocol === "about:") return;
    localStorage.setItem("tidewatch.session-ends", new Date(Date.now() + 3_600_000).toISOString());
  });
}

/** Opens the dashboard with a logged-in session. */
export async function open(page: Page, account: Account, hash = "#/"): Promise<void> {
  await logInAs(page, account);
  // Navigating to an address that differs only in its hash would not reload the page.
  await page.goto("about:blank");
  await page.goto(`${account.url}/${hash}`);
  await waitUntilSettled(page);
}

export async function visit(page: Page, hash: string): Promise<void> {
  await page.evaluate((to) => {
    location.hash = to;
  }, hash);
  await waitUntilSettled(page);
}

/** Waits until all requests are answered and no skeleton is left. */
export async function waitUntilSettled(page: Page): Promise<void> {
  await expect(page.locator("h1")).toBeVisible();
  await expect(page.locator(".skeleton")).toHaveCount(0);
  await expect(page.locator(".chart-frame[aria-busy=true]")).toHaveCount(0);
  await expect(page.locator(".waiting")).toHaveCount(0);
  if (page.url().includes("#/explore?")) await expect(page.getByTestId("chart-points")).toBeVisible();
}
