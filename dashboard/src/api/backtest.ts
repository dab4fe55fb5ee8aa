/** Backtests: what a rule would have done in the past. They change nothing. */
import { request } from "./client";
import type { Outcome, RuleInput, RuleState } from "./rules";

export interface TestedVerdict {
  at: string;
  outcome: Outcome;
}

export interface TimelineEntry {
  at: string;
  /** Null where a dwell ends. */
  outcome: Outcome | null;
  previousState: RuleState;
  state: RuleState;
  triggered: boolean;
  accepted: boolean;
}

/** The states and triggers that these verdicts would have caused of a rule that need not be stored; by time. */
export const tryVerdicts = (rule: RuleInput, verdicts: TestedVerdict[], signal: AbortSignal) =>
  request<{ timeline: TimelineEntry[] }>("POST", "/api/alerts/backtest/verdicts", {
    body: { ...rule, verdicts },
    signal,
  }).then((answer) => answer.timeline);
