/** Where the user is, and going elsewhere. */
import { routeOf, type Route } from "./hash";
import { createStore, useStore } from "./store";

const route = createStore<Route>(routeOf(location.hash));

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
