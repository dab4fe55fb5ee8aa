/** Theme and time zone of this browser. */
import { createStore, useStore, type Store } from "./store";

export type Theme = "system" | "light" | "dark";
/** `utc`, `local` for the one of the browser, or an IANA name such as `Europe/Stockholm`. */
export type Zone = "utc" | "local" | (string & {});

export const theme = kept<Theme>("tidewatch.theme", ["system", "light", "dark"]);
export const zone = kept<"utc" | "local">("tidewatch.zone", ["utc", "local"]);

/** The name of a zone for the server; null for UTC, which it goes by when it is told none. */
export function timezoneOf(zone: Zone): string | null {
  if (zone === "utc") return null;
  return zone === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : zone;
}

export const useZone = (): "utc" | "local" => useStore(zone);

const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");

/** Which of the two is shown now. */
export const shownTheme = createStore<"light" | "dark">("light");

/** Keeps the page's theme at what is preferred. Called once, before the first picture. */
export function applyTheme(): void {
  const apply = () => {
    const shown =
      theme.get() === "system" ? (darkSystem.matches ? "dark" : "light") : (theme.get() as "light" | "dark");
    document.documentElement.dataset["theme"] = shown;
    shownTheme.set(shown);
  };
  apply();
  theme.follow(apply);
  darkSystem.addEventListener("change", apply);
}

function kept<T extends string>(name: string, values: readonly [T, ...T[]]): Store<T> {
  const stored = localStorage.getItem(name) as T | null;
  const store = createStore<T>(stored !== null && values.includes(stored) ? stored : values[0]);
  store.follow(() => localStorage.setItem(name, store.get()));
  return store;
}
