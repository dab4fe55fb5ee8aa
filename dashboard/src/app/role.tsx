/** What the user may do, so that no button leads to a refusal. The server decides; this only hides. */
import type { ComponentChildren } from "preact";
import { ROLES, type Role } from "../api/accounts";
import { session } from "./session";
import { useStore } from "./store";

/** Whether who is logged in has this role, or one that may do more. */
export function useMay(least: Role): boolean {
  const role = useStore(session)?.user.role;
  return role !== undefined && ROLES.indexOf(role) >= ROLES.indexOf(least);
}

/** Shows what changes something only to those who may; editors, unless it says another role. */
export function IfMay({ role = "editor", children }: { role?: Role; children: ComponentChildren }): ComponentChildren {
  return useMay(role) ? children : null;
}
