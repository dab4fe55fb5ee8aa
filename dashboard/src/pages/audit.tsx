/** The audit of the organization: who changed what, and from where. */
import { useState } from "preact/hooks";
import { listAudit, type AuditEntry } from "../api/audit";
import { useLoad } from "../app/load";
import { Empty, Pager, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Time } from "../parts/show";
import { actionWords, changeWords, summary } from "./audit-words";

const PAGE_ROWS = 20;

export function Audit() {
  const [offset, setOffset] = useState(0);
  const read = (signal: AbortSignal) => listAudit(PAGE_ROWS, offset, signal);
  const audit = useLoad(`audit ${offset}`, read, ["organization", "members", "keys"]);
  return (
    <Section title="Audit" note="Who changed what, and from where, in the last 365 days. Only owners see it.">
      <WhenLoaded loaded={audit} what="audit">
        {(page) =>
          page.audit.length === 0 ? (
            <Empty title="Nothing was changed yet">Each change appears here, with who made it.</Empty>
          ) : (
            <>
              <TableFrame label="Audit" stacked>
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">Who</th>
                    <th scope="col">What</th>
                    <th scope="col">Changes</th>
                    <th scope="col">Address</th>
                  </tr>
                </thead>
                <tbody>
                  {page.audit.map((entry) => (
                    <Entry key={entry._id} entry={entry} />
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

function Entry({ entry: { at, actor, action, target, changes, address } }: { entry: AuditEntry }) {
  return (
    <tr>
      <td class="nowrap">
        <Time at={at} />
      </td>
      <td class="name" data-label="Who">
        <span>
          {actor.kind === "key" && <span class="muted">key </span>}
          {actor.name}
        </span>
      </td>
      <td class="name" data-label="What">
        <span>
          <span class="muted">{actionWords(action)}</span> {target.name}
        </span>
      </td>
      <td data-label="Changes">
        <details class="evidence">
          <summary>{summary(changes)}</summary>
          <dl class="rows">
            {changeWords(changes).map((change) => (
              <div key={change.member}>
                <dt>{change.member}</dt>
                <dd class="name">
                  {change.old !== null && (
                    <>
                      <del>{change.old}</del> <span aria-label="to">→</span>{" "}
                    </>
                  )}
                  {change.new ?? <span class="muted">none</span>}
                </dd>
              </div>
            ))}
          </dl>
        </details>
      </td>
      <td class="mono nowrap" data-label="Address">
        {address ?? "unknown"}
      </td>
    </tr>
  );
}
