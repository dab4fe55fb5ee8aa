/** Where the user is: the hash, as a path of segments and search parameters. */
import { createStore, useStore } from "./store";

export interface Route {
  /** `["buckets", "6b…", "sources"]`; empty at home. */
  path: string[];
  search: URLSearchParams;
}

export const route = createStore<Route>(routeOf(location.hash));

window.addEventListener("hashchange", () => route.set(routeOf(location.hash)));

export const useRoute = (): Route => useStore(route);

export function go(hash: string): void {
  location.hash = hash;
}

/** Changes the hash without a step in the browser's history. */
export function replaceHash(hash: string): void {
  history.replaceState(history.state, "", hash);
  route.set(routeOf(hash));
}

export function routeOf(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const at = text.indexOf("?");
  const path = (at < 0 ? text : text.slice(0, at)).split("/").filter((segment) => segment !== "");
  return { path: path.map(decoded), search: new URLSearchParams(at < 0 ? "" : text.slice(at + 1)) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
