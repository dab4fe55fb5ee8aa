/** Verdicts and triggers of a rule, newest first, each with its evidence. */
import { useState } from "preact/hooks";
import { ruleHistory } from "../api/rules";
import { useLoad } from "../app/load";
import { Empty, Pager, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Pill, Time } from "../parts/show";
import { evidenceWords } from "./evidence";
import { OutcomePill, StatePill } from "./rule-state";

const PAGE_ROWS = 20;

export function RuleHistory({ ruleId }: { ruleId: string }) {
  const [offset, setOffset] = useState(0);
  const read = (signal: AbortSignal) => ruleHistory(ruleId, PAGE_ROWS, offset, signal);
  const history = useLoad(`history ${ruleId} ${offset}`, read, ["rules"]);
  return (
    <Section title="History" note="Verdicts and triggers of the last 90 days.">
      <WhenLoaded loaded={history} what="history">
        {(page) =>
          page.history.length === 0 ? (
            <Empty title="Not evaluated yet">Verdicts appear here, with their evidence.</Empty>
          ) : (
            <>
              <TableFrame label="History" stacked>
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">What</th>
                    <th scope="col">State</th>
                    <th scope="col">Evidence</th>
                  </tr>
                </thead>
                <tbody>
                  {page.history.map((entry) => (
                    <tr key={entry._id} class={entry.kind === "trigger" ? "is-trigger" : undefined}>
                      <td class="nowrap">
                        <Time at={entry.at} />
                      </td>
                      <td data-label="What">
                        {entry.kind === "trigger" ? (
                          <>
                            <Pill tone="bad">fired</Pill>
                            {entry.silenceId != null && <span class="muted"> silenced</span>}
                          </>
                        ) : (
                          <OutcomePill outcome={entry.outcome} />
                        )}
                      </td>
                      <td class="nowrap" data-label="State">
                        {entry.previousState === entry.state ? (
                          <StatePill state={entry.state} />
                        ) : (
                          <span>
                            <StatePill state={entry.previousState} /> <span aria-label="to">→</span>{" "}
                            <StatePill state={entry.state} />
                          </span>
                        )}
                      </td>
                      <td class="evidence-cell" data-label="Evidence">
                        <Evidence evidence={entry.evidence} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </TableFrame>
              <Pager offset={offset} limit={PAGE_ROWS} total={page.pagination.total} onMove={setOffset} />
            </>
          )
        }
      </WhenLoaded>
    </Section>
  );
}

function Evidence({ evidence }: { evidence: unknown }) {
  if (evidence === null || evidence === undefined) return <span class="muted">none</span>;
  return (
    <details class="evidence">
      <summary>
        <span>{evidenceWords(evidence)}</span>
      </summary>
      <pre class="mono">{JSON.stringify(evidence, null, 2)}</pre>
    </details>
  );
}
