/** How a rule stands: its state and its two timers, counting. */
import type { Outcome, Rule, RuleState } from "../api/rules";
import { formatSpan, formatTimer } from "../app/format";
import { useMoment, useNow } from "../app/load";
import { Pill, type Tone } from "../parts/show";

const TONES: Record<RuleState, Tone> = { armed: "ok", firing: "bad", clearing: "warn", unevaluated: "idle" };

/** Armed is well only as far as somebody can tell. */
export function RuleStatePill({ rule }: { rule: Rule }) {
  const now = useNow(NOW_MS);
  if (rule.status !== "active") return <Pill tone="idle">{rule.status}</Pill>;
  const blind = rule.lastOutcome === null || rule.lastOutcome === "inconclusive" || unansweredMs(rule, now) !== null;
  const tone = rule.state === "armed" && blind ? "idle" : TONES[rule.state];
  return (
    <span class="pills">
      <Pill tone={tone}>{rule.state}</Pill>
      {rule.lastOutcome === "inconclusive" && <Pill tone="warn">inconclusive</Pill>}
      {rule.overdue && <Pill tone="warn">overdue</Pill>}
      {rule.acknowledgement !== null && <Pill tone="idle">acknowledged</Pill>}
    </span>
  );
}

/** An evaluator that is there answers within seconds; below this its verdict is only on the way. */
const UNANSWERED_MS = 60_000;
const NOW_MS = 5000;

/** For how long a verdict has been due and has not come; null when none is, or it is on the way. */
export function unansweredMs(rule: Rule, now: number): number | null {
  if (rule.status !== "active" || rule.evaluation === null || rule.nextDueAt === null) return null;
  const late = now - Date.parse(rule.nextDueAt);
  return late >= UNANSWERED_MS ? late : null;
}

export function StatePill({ state }: { state: RuleState }) {
  return <Pill tone={TONES[state]}>{state}</Pill>;
}

const OUTCOMES: Record<Outcome, { text: string; tone: Tone }> = {
  met: { text: "met", tone: "bad" },
  not_met: { text: "not met", tone: "ok" },
  inconclusive: { text: "inconclusive", tone: "warn" },
};

export function OutcomePill({ outcome }: { outcome: Outcome }) {
  return <Pill tone={OUTCOMES[outcome].tone}>{OUTCOMES[outcome].text}</Pill>;
}

/** When the rule clears, null when it does not. */
export function clearsAt(rule: Rule): number | null {
  if (rule.state !== "clearing" || rule.conditionClearedAt === null || rule.evaluation === null) return null;
  const dwell = rule.evaluation.dwellSeconds ?? rule.evaluation.windowSeconds;
  return Date.parse(rule.conditionClearedAt) + dwell * 1000;
}

/** Whether it fires or clears, or nobody can say whether it should. */
export function needsALook(rule: Rule, now: number): boolean {
  if (rule.status !== "active") return false;
  const burns = rule.state === "firing" || rule.state === "clearing";
  return burns || rule.lastOutcome === "inconclusive" || unansweredMs(rule, now) !== null;
}

const ORDER = ["firing", "clearing", "armed", "unevaluated"];

/** What burns stands first; of the rest, what is paused stands last. */
export function byUrgency(a: Rule, b: Rule): number {
  const rank = (rule: Rule) => (rule.status === "active" ? ORDER.indexOf(rule.state) : ORDER.length);
  return rank(a) - rank(b) || (clearsAt(a) ?? 0) - (clearsAt(b) ?? 0);
}

/** A second behind, so that the server's clock is there too. */
const BEHIND_MS = 1000;

/** Loads rules again when the next of them is armed by time alone, which no request of anybody's tells. */
export function useClearing(rules: Rule[] | undefined, reload: () => void): void {
  const now = Date.now();
  const moments = (rules ?? []).map(clearsAt).filter((at) => at !== null && at + BEHIND_MS > now) as number[];
  useMoment(moments.length === 0 ? null : Math.min(...moments) + BEHIND_MS, reload);
}

/** `due in 00:41`, `waits for a verdict since 00:12`, and when it clears. */
export function RuleTimers({ rule }: { rule: Rule }) {
  const now = useNow(1000);
  if (rule.evaluation === null) return <span class="muted">not evaluated</span>;
  if (rule.status !== "active") return <span class="muted">not evaluated while {rule.status}</span>;
  const due = rule.nextDueAt === null ? null : (Date.parse(rule.nextDueAt) - now) / 1000;
  const clears = clearsAt(rule);
  const unanswered = unansweredMs(rule, now);
  return (
    <span class="timers">
      {unanswered !== null && (
        <span class="warn-text">no evaluator has answered for {formatSpan(Math.floor(unanswered / 60_000) * 60)}</span>
      )}
      {due !== null &&
        unanswered === null &&
        (due > 0 ? (
          <span>
            due in <span class="timer">{formatTimer(due)}</span>
          </span>
        ) : (
          <span class="warn-text">
            waits for a verdict <span class="timer">{formatTimer(-due)}</span>
          </span>
        ))}
      {clears !== null && (
        <span>
          {clears > now ? "clears in " : "clears "}
          <span class="timer">{clears > now ? formatTimer((clears - now) / 1000) : "now"}</span>
        </span>
      )}
    </span>
  );
}
