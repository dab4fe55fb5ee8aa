/** How a rule stands: its state and its two timers, counting. */
import type { Outcome, Rule, RuleState } from "../api/rules";
import { formatTimer } from "../app/format";
import { useNow } from "../app/load";
import { Pill, type Tone } from "../parts/show";

const TONES: Record<RuleState, Tone> = { armed: "ok", firing: "bad", clearing: "warn", unevaluated: "idle" };

export function RuleStatePill({ rule }: { rule: Rule }) {
  if (rule.status !== "active") return <Pill tone="idle">{rule.status}</Pill>;
  return <Pill tone={TONES[rule.state]}>{rule.state}</Pill>;
}

export function StatePill({ state }: { state: RuleState }) {
  return <Pill tone={TONES[state]}>{state}</Pill>;
}

const OUTCOMES: Record<Outcome, { text: string; tone: Tone }> = {
  met: { text: "met", tone: "bad" },
  not_met: { text: "not met", tone: "ok" },
  inconclusive: { text: "inconclusive", tone: "idle" },
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

/** `due in 00:41`, `waits for a verdict since 00:12`, and when it clears. */
export function RuleTimers({ rule }: { rule: Rule }) {
  const now = useNow(1000);
  if (rule.evaluation === null) return <span class="muted">not evaluated</span>;
  if (rule.status !== "active") return <span class="muted">not judged while {rule.status}</span>;
  const due = rule.nextDueAt === null ? null : (Date.parse(rule.nextDueAt) - now) / 1000;
  const clears = clearsAt(rule);
  return (
    <span class="timers">
      {due !== null &&
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
