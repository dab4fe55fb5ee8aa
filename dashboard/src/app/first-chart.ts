/** Whether this user has looked at a chart in this browser: the last of the first steps. */
import { createStore, useStore } from "./store";

const STORED_AS = "tidewatch.charted";

const charted = createStore<string[]>(stored());

function stored(): string[] {
  return (localStorage.getItem(STORED_AS) ?? "").split(" ").filter((id) => id !== "");
}

export function useCharted(userId: string | undefined): boolean {
  const users = useStore(charted);
  return userId !== undefined && users.includes(userId);
}

export function noteCharted(userId: string): void {
  // Read anew: another tab may have written.
  const users = new Set([...stored(), userId]);
  localStorage.setItem(STORED_AS, [...users].join(" "));
  charted.set([...users]);
}
