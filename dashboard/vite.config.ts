import { defineConfig } from "vitest/config";

/** The policy that the server sends with the page; the preview sends it too, so that a violation shows while building. */
export const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const server = process.env["TIDEWATCH_URL"] ?? "http://127.0.0.1:8080";
const proxy = { "/api": server, "/health": server };

export default defineConfig({
  build: {
    target: "es2022",
    // The server serves the page itself and /assets/*, nothing else.
    assetsDir: "assets",
    // A data: URI would have to be allowed by the policy, and saves one request of a page that makes three.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy },
  preview: { proxy, headers: { "Content-Security-Policy": CONTENT_SECURITY_POLICY } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
