/** Where the user is, and going elsewhere; a form that is not saved may keep him until he says so. */
import { routeOf, type Route } from "./hash";
import { createStore, useStore } from "./store";

const route = createStore<Route>(routeOf(location.hash));
let shown = location.hash;

/** What goes on when the user leaves what is not saved; null while nobody is asked. */
export const leaving = createStore<{ leave: () => void } | null>(null);

interface Guard {
  onLeave: () => void;
}

const guards = new Set<Guard>();

window.addEventListener("hashchange", () => {
  if (location.hash === shown) return;
  if (guards.size > 0) {
    // The address is that of the form again; one step back is where the user wanted to go.
    history.pushState(null, "", shown);
    ask(() => history.back());
    return;
  }
  showAddress();
});

function showAddress(): void {
  shown = location.hash;
  route.set(routeOf(shown));
}

window.addEventListener("beforeunload", (event) => {
  if (guards.size > 0) event.preventDefault();
});

/** Asks before the user leaves this page, until the function it gives back is called; `onLeave`: he has left. */
export function guardLeaving(onLeave: () => void): () => void {
  const guard = { onLeave };
  guards.add(guard);
  return () => guards.delete(guard);
}

/** Does it at once, or when the user has said that what is not saved may be lost. */
export function whenFree(act: () => void): void {
  if (guards.size === 0) act();
  else ask(act);
}

function ask(act: () => void): void {
  leaving.set({
    leave: () => {
      leaving.set(null);
      for (const guard of guards) guard.onLeave();
      guards.clear();
      act();
    },
  });
}

export const useRoute = (): Route => useStore(route);

/** Goes there at once: the next key or click finds the page of the new address, not of the one before. */
export function go(hash: string): void {
  location.hash = hash;
  if (guards.size === 0 && location.hash !== shown) showAddress();
}

/** Changes the hash without a step in the browser's history. */
export function replaceHash(hash: string): void {
  history.replaceState(history.state, "", hash);
  showAddress();
}
