/** Silences on the page of all rules: which there are, a new one, and the end of one. */
import { useState } from "preact/hooks";
import type { Bucket } from "../api/buckets";
import type { Rule } from "../api/rules";
import { deleteSilence, listSilences, type Silence } from "../api/silences";
import { useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { Button } from "../parts/button";
import { Confirm } from "../parts/dialog";
import { Empty, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago, Time } from "../parts/show";
import { SilenceForm } from "./silence-form";

interface SilencesProps {
  rules: Rule[];
  buckets: Bucket[];
}

export function Silences({ rules, buckets }: SilencesProps) {
  const silences = useLoad("silences", listSilences, ["silences"]);
  const [creating, setCreating] = useState(false);
  const [ending, setEnding] = useState<Silence | null>(null);
  return (
    <Section
      title="Silences"
      note="While a silence is in force, its rules fire and are recorded, and nobody is notified."
      actions={
        <IfMay>
          <Button icon="plus" small onClick={() => setCreating(true)}>
            New silence
          </Button>
        </IfMay>
      }
    >
      <WhenLoaded loaded={silences} what="silences">
        {(list) =>
          list.length === 0 ? (
            <Empty title="No rule is silenced">Silence rules while you work on what they watch.</Empty>
          ) : (
            <TableFrame label="Silences" stacked>
              <thead>
                <tr>
                  <th scope="col">Reason</th>
                  <th scope="col">Silenced</th>
                  <th scope="col">Ends</th>
                  <th scope="col">Created</th>
                  <th scope="col">
                    <span class="visually-hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {list.map((silence) => (
                  <tr key={silence._id}>
                    <td>{silence.reason}</td>
                    <td class="name" data-label="Silenced">
                      {subjectOf(silence, rules, buckets)}
                    </td>
                    <td class="nowrap" data-label="Ends">
                      <Time at={silence.until} />
                    </td>
                    <td class="nowrap" data-label="Created">
                      <Ago at={silence.createdAt} />
                    </td>
                    <td>
                      <IfMay>
                        <Button small label={`End the silence: ${silence.reason}`} onClick={() => setEnding(silence)}>
                          End
                        </Button>
                      </IfMay>
                    </td>
                  </tr>
                ))}
              </tbody>
            </TableFrame>
          )
        }
      </WhenLoaded>
      {creating && (
        <SilenceForm
          rules={rules}
          buckets={buckets}
          onClose={() => setCreating(false)}
          onDone={() => {
            setCreating(false);
            silences.reload();
          }}
        />
      )}
      {ending !== null && (
        <Confirm
          title="End silence"
          action="End silence"
          onClose={() => setEnding(null)}
          onConfirm={async () => {
            await deleteSilence(ending._id);
            notify("Silence ended: its rules notify again.");
            setEnding(null);
            silences.reload();
          }}
        >
          <p>
            {subjectOf(ending, rules, buckets)} will notify again. What fired meanwhile is not sent later.
          </p>
        </Confirm>
      )}
    </Section>
  );
}

/** What a silence is about, by name. Rules that are gone are counted only. */
function subjectOf({ bucketId, alertIds }: Silence, rules: Rule[], buckets: Bucket[]): string {
  if (alertIds === null) {
    if (bucketId === null) return "every rule";
    return `every rule of ${buckets.find((bucket) => bucket._id === bucketId)?.name ?? bucketId}`;
  }
  const names = rules.filter((rule) => alertIds.includes(rule._id)).map((rule) => rule.name);
  const gone = alertIds.length - names.length;
  return [...names, ...(gone > 0 ? [`${gone} deleted`] : [])].join(", ");
}
