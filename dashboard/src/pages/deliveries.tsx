/** Deliveries with their attempts, of a webhook or of a rule's own URL. */
import { useState } from "preact/hooks";
import type { Delivery, DeliveriesPage } from "../api/webhooks";
import { plural } from "../app/format";
import { useAction, useInterval, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { useMay } from "../app/role";
import { Button } from "../parts/button";
import { ErrorBox } from "../parts/forms";
import { Empty, Pager, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago, Pill, Time, type Tone } from "../parts/show";

const PAGE_ROWS = 20;
/** While one is under way, its outcome is seconds ahead. */
const PENDING_RELOAD_MS = 1500;
const TONES: Record<Delivery["status"], Tone> = { delivered: "ok", failed: "bad", pending: "warn" };

interface DeliveriesProps {
  id: string;
  title: string;
  list: (limit: number, offset: number, signal: AbortSignal) => Promise<DeliveriesPage>;
  redeliver?: (deliveryId: string) => Promise<unknown>;
}

export function Deliveries({ id, title, list, redeliver }: DeliveriesProps) {
  const [offset, setOffset] = useState(0);
  const page = useLoad(`deliveries ${id} ${offset}`, (signal) => list(PAGE_ROWS, offset, signal), ["webhooks"]);
  const pending = page.data?.deliveries.some((delivery) => delivery.status === "pending") ?? false;
  useInterval(pending ? PENDING_RELOAD_MS : null, page.refresh);
  const mayChange = useMay("editor");
  const mayRedeliver = redeliver !== undefined && mayChange;
  const again = useAction(async (delivery: Delivery) => {
    await redeliver?.(delivery._id);
    notify("Queued once more.");
    page.reload();
  });
  return (
    <Section title={title} note="Of the last 7 days.">
      <ErrorBox error={again.error} />
      <WhenLoaded loaded={page} what="deliveries">
        {(data) =>
          data.deliveries.length === 0 ? (
            <Empty title="Nothing delivered yet">Deliveries appear here with the receiver's answers.</Empty>
          ) : (
            <>
              <TableFrame label={title} stacked>
                <thead>
                  <tr>
                    <th scope="col">Queued</th>
                    <th scope="col">Event</th>
                    <th scope="col">Status</th>
                    <th scope="col">Attempts</th>
                    {mayRedeliver && (
                      <th scope="col">
                        <span class="visually-hidden">Actions</span>
                      </th>
                    )}
                  </tr>
                </thead>
                <tbody>
                  {data.deliveries.map((delivery) => (
                    <tr key={delivery._id}>
                      <td class="nowrap">
                        <Time at={delivery.createdAt} />
                      </td>
                      <td class="mono nowrap" data-label="Event">
                        {delivery.event}
                      </td>
                      <td class="nowrap" data-label="Status">
                        <Pill tone={TONES[delivery.status]}>{delivery.status}</Pill>
                        {delivery.nextAttemptAt !== null && (
                          <div class="hint">
                            again <Ago at={delivery.nextAttemptAt} />
                          </div>
                        )}
                      </td>
                      <td class="evidence-cell" data-label="Attempts">
                        <Attempts delivery={delivery} />
                      </td>
                      {mayRedeliver && (
                        <td class="row-actions">
                          <Button
                            small
                            icon="refresh"
                            onClick={() => void again.run(delivery)}
                            disabled={delivery.status === "pending"}
                          >
                            Redeliver
                          </Button>
                        </td>
                      )}
                    </tr>
                  ))}
                </tbody>
              </TableFrame>
              <Pager offset={offset} limit={PAGE_ROWS} total={data.pagination.total} onMove={setOffset} />
            </>
          )
        }
      </WhenLoaded>
    </Section>
  );
}

function Attempts({ delivery }: { delivery: Delivery }) {
  const last = delivery.attempts.at(-1);
  if (last === undefined) return <span class="muted">none yet</span>;
  return (
    <details class="evidence wraps">
      <summary>
        {last.statusCode ?? last.error ?? "no answer"}
        <span class="muted"> · {plural(delivery.attempts.length, "attempt")}</span>
      </summary>
      <ol class="attempts">
        {delivery.attempts.map((attempt) => (
          <li key={attempt.at}>
            <Time at={attempt.at} /> <strong>{attempt.statusCode ?? "no answer"}</strong>{" "}
            <span class="muted">in {attempt.durationMs} ms</span>
            {attempt.error !== undefined && <div class="bad-text">{attempt.error}</div>}
          </li>
        ))}
      </ol>
      <p class="hint mono">{delivery.webhookId}</p>
    </details>
  );
}
