/** The user's own account: who, and the password. */
import { useState } from "preact/hooks";
import { changePassword } from "../api/accounts";
import { useAction } from "../app/load";
import { notify } from "../app/notices";
import { isNamedZone } from "../app/clock";
import { chooseZone, useZone } from "../app/preferences";
import { beginSession, session } from "../app/session";
import { useStore } from "../app/store";
import { Button } from "../parts/button";
import { ErrorBox, SelectField, faultAt } from "../parts/forms";
import { PasswordField } from "../parts/password";
import { Page, Section } from "../parts/page";
import { Time } from "../parts/show";
import { Sessions } from "./sessions";

/** By whose clock times are shown, in this browser. */
function Times() {
  const zone = useZone();
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <Section title="Times" class="card">
      <SelectField
        label="Shown in"
        value={zone}
        onChange={chooseZone}
        options={[
          { value: "utc", label: "UTC" },
          { value: "local", label: `Local: ${own}` },
          ...new Set([...Intl.supportedValuesOf("timeZone"), ...(isNamedZone(zone) ? [zone] : [])]),
        ]}
        hint="In this browser. Days of charts begin by this clock; a board may have a time zone of its own."
      />
    </Section>
  );
}

export function AccountPage() {
  const current = useStore(session);
  const [currentPassword, setCurrent] = useState("");
  const [newPassword, setNew] = useState("");
  const { run, running, error } = useAction(async () => {
    beginSession(await changePassword(currentPassword, newPassword));
    setCurrent("");
    setNew("");
    notify("The password has been changed. All other sessions have been logged out.");
  });
  return (
    <Page title="Account">
      <div class="columns">
        <Section title="You" class="card">
          <dl class="rows">
            <div>
              <dt>Name</dt>
              <dd class="name">{current?.user.name}</dd>
            </div>
            <div>
              <dt>Email</dt>
              <dd class="name">{current?.user.email}</dd>
            </div>
            <div>
              <dt>Role</dt>
              <dd>{current?.user.role}</dd>
            </div>
            <div>
              <dt>Logged in until</dt>
              <dd>
                <Time at={current?.expiresAt ?? null} />
              </dd>
            </div>
          </dl>
        </Section>
        <Section title="Password" class="card">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void run();
            }}
          >
            <PasswordField
              label="Current password"
              value={currentPassword}
              onInput={setCurrent}
              autocomplete="current-password"
              required
              fault={faultAt(error, "currentPassword")}
            />
            <PasswordField
              label="New password"
              value={newPassword}
              onInput={setNew}
              autocomplete="new-password"
              required
              hint="10 to 128 characters"
              fault={faultAt(error, "newPassword")}
            />
            <ErrorBox error={error} shownAt={(at) => at === "currentPassword" || at === "newPassword"} />
            <div class="actions">
              <Button type="submit" look="primary" busy={running}>
                Change password
              </Button>
            </div>
          </form>
        </Section>
      </div>
      <Times />
      <Sessions />
      <p class="hint">
        Do you run this server? <a href="#/operator">Operator</a>
      </p>
    </Page>
  );
}
