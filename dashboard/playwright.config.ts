import { defineConfig } from "@playwright/test";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** TIDEWATCH_BIN: the server. CHROMIUM: the browser. */
export default defineConfig({
  testDir: "tests",
  workers: 1,
  timeout: 180_000,
  // Machines that build beside it are slow now and then; what does not come at all still fails.
  expect: { timeout: 15_000 },
  reporter: "list",
  use: {
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS },
    viewport: { width: 1440, height: 900 },
    timezoneId: "Europe/Stockholm",
    colorScheme: "light",
  },
  projects: [
    { name: "browser", testMatch: "*.spec.ts" },
    { name: "screenshots", testMatch: "screenshots.ts" },
  ],
});
