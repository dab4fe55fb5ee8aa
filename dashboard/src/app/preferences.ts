/** Theme and time zone of this browser. */
import { isKnownZone, isNamedZone } from "./clock";
import { createStore, useStore, type Store } from "./store";

export type Theme = "system" | "light" | "dark";
/** `utc`, `local` for the one of the browser, or an IANA name such as `Europe/Stockholm`. */
export type Zone = "utc" | "local" | (string & {});

const THEMES: readonly string[] = ["system", "light", "dark"] satisfies Theme[];

export const theme = kept<Theme>("tidewatch.theme", "system", (text): text is Theme => THEMES.includes(text));
export const zone = kept("tidewatch.zone", "utc", isKnownZone);
/** The zone that was chosen by name last, to go back to; empty while there was none. */
export const namedZone = kept("tidewatch.named-zone", "", isNamedZone);

/** The name of a zone for the server; null for UTC, which it goes by when it is told none. */
export function timezoneOf(zone: Zone): string | null {
  if (zone === "utc") return null;
  return zone === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : zone;
}

export const useZone = (): Zone => useStore(zone);

export function chooseZone(chosen: Zone): void {
  zone.set(chosen);
  if (isNamedZone(chosen)) namedZone.set(chosen);
}

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

function kept<T extends string>(name: string, otherwise: T, isOne: (text: string) => text is T): Store<T>;
function kept(name: string, otherwise: string, isOne: (text: string) => boolean): Store<string>;
function kept(name: string, otherwise: string, isOne: (text: string) => boolean): Store<string> {
  const stored = localStorage.getItem(name);
  const store = createStore(stored !== null && isOne(stored) ? stored : otherwise);
  store.follow(() => localStorage.setItem(name, store.get()));
  return store;
}
