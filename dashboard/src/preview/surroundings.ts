/** What has happened around a stored rule: its triggers, the silences in force over it, and annotations. */
import { listSilences, type Silence } from "../api/silences";
import type { Rule } from "../api/rules";
import type { ChartNote } from "../chart/notes";
import { fetchNotes } from "../explorer/annotations";
import type { FieldRef } from "../explorer/state";
import { triggersOf } from "../explorer/triggers";

export interface Surroundings {
  /** When the rule has fired, ascending. */
  triggers: number[];
  notes: ChartNote[];
}

/** `rule`: null of one that is not stored yet. */
export async function fetchSurroundings(
  rule: Rule | null,
  fields: FieldRef[],
  signal: AbortSignal,
): Promise<Surroundings> {
  const [triggers, silences, notes] = await Promise.all([
    rule === null || rule.lastTriggeredAt === null ? [] : triggersOf(rule, signal),
    rule === null ? [] : listSilences(signal),
    fetchNotes(fields, signal),
  ]);
  const silent = rule === null ? [] : silences.filter((silence) => isOver(silence, rule)).map(silenceNote);
  return { triggers: [...triggers].sort((a, b) => a - b), notes: [...silent, ...notes] };
}

/** Whether a silence is about a rule. */
export function isOver({ bucketId, alertIds }: Silence, rule: Pick<Rule, "_id" | "bucketId">): boolean {
  if (alertIds !== null) return alertIds.includes(rule._id);
  return bucketId === null || bucketId === rule.bucketId;
}

const silenceNote = ({ _id, createdAt, until, reason }: Silence): ChartNote => ({
  id: `silence ${_id}`,
  at: Date.parse(createdAt),
  until: Date.parse(until),
  text: reason,
  called: "Silence",
});

/** Those of a span; both ends belong to it. */
export const within = (notes: ChartNote[], from: number, to: number): ChartNote[] =>
  notes.filter(({ at, until }) => at <= to && (until ?? at) >= from);
