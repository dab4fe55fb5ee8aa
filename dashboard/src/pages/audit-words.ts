/** The words in which the audit is shown. */
import { formatAny } from "../app/format";

/** The name that a kind of target has in the page. */
const NAMES: Record<string, string> = {
  source: "data source",
  rule: "alert rule",
  data: "points",
  mute: "silence",
};

/** An action such as `rule.updated` in words. */
export function actionWords(action: string): string {
  const [kind = "", verb = ""] = action.split(".");
  return `${NAMES[kind] ?? kind} ${verb}`;
}

export interface ChangeWords {
  member: string;
  old: string | null;
  new: string | null;
}

/** A change with an old and a new value; both are null where there was or is none. */
function isReplaced(change: unknown): change is { old: unknown; new: unknown } {
  return typeof change === "object" && change !== null && "old" in change && "new" in change;
}

const shown = (value: unknown): string | null => (value === null ? null : formatAny(value));

export function changeWords(changes: Record<string, unknown>): ChangeWords[] {
  return Object.entries(changes).map(([member, change]) =>
    isReplaced(change)
      ? { member, old: shown(change.old), new: shown(change.new) }
      : { member, old: null, new: shown(change) },
  );
}

/** The members that were changed, as one short line. */
export function summary(changes: Record<string, unknown>): string {
  const names = Object.keys(changes);
  const first = names.slice(0, 4).join(", ");
  return names.length > 4 ? `${first} and ${names.length - 4} more` : first;
}
