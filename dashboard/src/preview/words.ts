/** What a try came to, in words. Pure. */
import { formatCount, formatSpan, plural, sentence } from "../app/format";
import type { Trial } from "./trial";
import type { TrialState } from "./use-trial";

export interface TrialWords {
  main: string;
  note: string | null;
}

export function wordsOfTrial(state: TrialState, intervalSeconds: number): TrialWords {
  switch (state.kind) {
    case "faulty":
      return { main: "It is tried out on the past when nothing above is missing.", note: null };
    case "running":
      return { main: "Trying it out on the past…", note: null };
    case "failed":
      return { main: "It could not be tried out.", note: sentence(state.error.message) };
    case "answered":
      return wordsOfAnswer(state.trial, intervalSeconds);
  }
}

function wordsOfAnswer(trial: Trial, intervalSeconds: number): TrialWords {
  if (trial.kind === "cannot") {
    return {
      main: `It cannot be tried out here: ${trial.reason}.`,
      note: trial.isOwn
        ? "POST /api/alerts/backtest lists past cycles with the queries that your evaluator would have got."
        : "Once it is saved, tidewatch evaluate --backtest can try it out.",
    };
  }
  const { range, cycles, firings, inconclusive } = trial;
  const often = firings.length === 1 ? "once" : plural(firings.length, "time");
  const fired = firings.length === 0 ? "not have fired" : `have fired ${often}`;
  const parts = [`${plural(cycles, "evaluation")}, ${formatSpan(intervalSeconds)} apart`];
  if (inconclusive > 0) {
    const share = inconclusive === cycles ? "all" : formatCount(inconclusive);
    parts.push(`${share} of them inconclusive, as the points did not allow a verdict`);
  }
  return { main: `Would ${fired} in the last ${range.name}.`, note: `${parts.join("; ")}.` };
}
