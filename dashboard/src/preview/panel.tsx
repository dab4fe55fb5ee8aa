/** Under the form of a rule: the last day of what it looks at, and what the rule would have done. */
import { useMemo } from "preact/hooks";
import { formatTime } from "../app/format";
import { useZone } from "../app/preferences";
import { Button } from "../parts/button";
import { RuleChart, type RuleChartProps } from "./chart";
import { runTrial } from "./trial";
import { useTrial } from "./use-trial";
import { wordsOfTrial } from "./words";

export type RulePanelProps = Omit<RuleChartProps, "firings">;

const NONE: readonly number[] = [];
/** So many of the newest are listed. */
const LISTED_MAX = 5;

export function RulePanel({ draft, sources, rule }: RulePanelProps) {
  const zone = useZone();
  const { state, again } = useTrial(draft, sources, runTrial);
  const shown = state.kind === "answered" ? state.trial : state.kind === "running" ? state.before : null;
  const firings = shown?.kind === "done" ? shown.firings : NONE;
  const listed = useMemo(() => firings.slice(-LISTED_MAX).reverse(), [firings]);
  const { main, note } = wordsOfTrial(state, Number(draft.intervalSeconds));
  return (
    <section class="rule-panel" aria-label="On the past">
      <RuleChart draft={draft} sources={sources} rule={rule} firings={firings} />
      <div class={state.kind === "running" ? "trial running" : "trial"}>
        <p class="trial-main" role="status">
          {main}
        </p>
        {note !== null && <p class="hint">{note}</p>}
        {state.kind === "answered" && listed.length > 0 && (
          <p class="hint">
            {firings.length > listed.length ? `The last ${listed.length}: ` : "At "}
            {listed.map((at) => formatTime(at, zone).slice(0, 16)).join(", ")}
          </p>
        )}
        {state.kind === "failed" && (
          <Button small icon="refresh" onClick={again}>
            Try again
          </Button>
        )}
      </div>
    </section>
  );
}
