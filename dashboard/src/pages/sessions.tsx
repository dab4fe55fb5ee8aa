/** Where the user is logged in. */
import { useState } from "preact/hooks";
import { endOwnSession, listSessions, type OwnSession } from "../api/sessions";
import { useLoad } from "../app/load";
import { notify } from "../app/notices";
import { Button } from "../parts/button";
import { Confirm } from "../parts/dialog";
import { Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago, Pill, Time } from "../parts/show";

export function Sessions() {
  const sessions = useLoad("sessions", listSessions);
  const [ending, setEnding] = useState<OwnSession | null>(null);
  return (
    <Section
      title="Sessions"
      note="Where you are logged in. A session ends 12 hours after its last use, and 30 days after the login at most."
    >
      <WhenLoaded loaded={sessions} what="sessions">
        {(list) => (
          <TableFrame label="Sessions" stacked>
            <thead>
              <tr>
                <th scope="col">Program</th>
                <th scope="col">Address</th>
                <th scope="col">Logged in</th>
                <th scope="col">Last used</th>
                <th scope="col">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.map((session) => (
                <tr key={session._id}>
                  <td class="name">{session.userAgent ?? "unknown"}</td>
                  <td class="mono" data-label="Address">
                    {session.address ?? "unknown"}
                  </td>
                  <td data-label="Logged in">
                    <Time at={session.createdAt} />
                  </td>
                  <td data-label="Last used">
                    <Ago at={session.lastUsedAt} />
                  </td>
                  <td class="row-actions">
                    {session.current ? (
                      <Pill tone="accent">this one</Pill>
                    ) : (
                      <Button
                        small
                        label={`End the session of ${session.userAgent ?? "an unknown program"}`}
                        onClick={() => setEnding(session)}
                      >
                        End
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </TableFrame>
        )}
      </WhenLoaded>
      {ending !== null && (
        <Confirm
          title="End session"
          action="End session"
          onClose={() => setEnding(null)}
          onConfirm={async () => {
            await endOwnSession(ending._id);
            notify("The session has been ended.");
            setEnding(null);
            sessions.reload();
          }}
        >
          <p>
            Whoever uses it (<span class="name">{ending.userAgent ?? "an unknown program"}</span>, from{" "}
            <span class="mono">{ending.address ?? "an unknown address"}</span>) is logged out at once.
          </p>
        </Confirm>
      )}
    </Section>
  );
}
