/** Who belongs to the organization, in which role, and who is invited. */
import { useState } from "preact/hooks";
import { ROLES, type Role } from "../api/accounts";
import {
  changeRole,
  createReset,
  invite,
  listInvitations,
  listMembers,
  removeMember,
  withdrawInvitation,
  type Invitation,
  type Link,
  type Member,
} from "../api/members";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay, useMay } from "../app/role";
import { session } from "../app/session";
import { useStore } from "../app/store";
import { Button } from "../parts/button";
import { Confirm, Dialog, ShownOnce } from "../parts/dialog";
import { ErrorBox, SelectField, TextField, faultAt } from "../parts/forms";
import { Section, TableFrame, WhenLoaded } from "../parts/page";
import { Pill, Time } from "../parts/show";

const ROLE_OPTIONS: { value: Role; label: string }[] = [
  { value: "viewer", label: "viewer: sees everything" },
  { value: "editor", label: "editor: changes data, rules and boards" },
  { value: "owner", label: "owner: also members and keys" },
];

type Asked = { kind: "role" | "remove" | "reset"; member: Member };

export function Members() {
  const members = useLoad("members", listMembers, ["members"]);
  const [inviting, setInviting] = useState(false);
  const [asked, setAsked] = useState<Asked | null>(null);
  const isOwner = useMay("owner");
  const own = useStore(session)?.user._id;
  const close = () => (setAsked(null), members.reload());
  return (
    <>
      <Section
        title="Members"
        note="Viewers read, editors change data and rules, owners also manage people and keys of the organization."
        actions={
          <IfMay role="owner">
            <Button icon="plus" small onClick={() => setInviting(true)}>
              Invite
            </Button>
          </IfMay>
        }
      >
        <WhenLoaded loaded={members} what="members">
          {(list) => (
            <TableFrame label="Members" stacked>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Email</th>
                  <th scope="col">Role</th>
                  <th scope="col">Since</th>
                  {isOwner && (
                    <th scope="col">
                      <span class="visually-hidden">Actions</span>
                    </th>
                  )}
                </tr>
              </thead>
              <tbody>
                {list.map((member) => (
                  <tr key={member._id}>
                    <td class="name">
                      {member.name}
                      {member._id === own && <span class="muted"> (you)</span>}
                    </td>
                    <td class="name" data-label="Email">
                      {member.email}
                    </td>
                    <td data-label="Role">
                      <Pill tone={member.role === "viewer" ? "idle" : "accent"}>{member.role}</Pill>
                    </td>
                    <td data-label="Since">
                      <Time at={member.createdAt} />
                    </td>
                    {isOwner && (
                      <td class="row-actions">
                        <Button
                          icon="edit"
                          look="quiet"
                          small
                          label={`Change the role of ${member.name}`}
                          onClick={() => setAsked({ kind: "role", member })}
                        />
                        <Button
                          icon="refresh"
                          look="quiet"
                          small
                          label={`Reset the password of ${member.name}`}
                          onClick={() => setAsked({ kind: "reset", member })}
                        />
                        <Button
                          icon="trash"
                          look="quiet"
                          small
                          label={`Remove ${member.name}`}
                          onClick={() => setAsked({ kind: "remove", member })}
                        />
                      </td>
                    )}
                  </tr>
                ))}
              </tbody>
            </TableFrame>
          )}
        </WhenLoaded>
      </Section>
      {isOwner && <Invitations />}
      {inviting && <Invite onClose={() => setInviting(false)} />}
      {asked?.kind === "role" && <ChangeRole member={asked.member} onClose={close} />}
      {asked?.kind === "reset" && <Reset member={asked.member} onClose={close} />}
      {asked?.kind === "remove" && (
        <Confirm
          title="Remove member"
          action="Remove member"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            await removeMember(asked.member._id);
            notify(`${asked.member.name} is no longer a member.`);
            close();
          }}
        >
          <p>
            <strong class="name">{asked.member.name}</strong> ({asked.member.email}) is logged out everywhere at once. Keys,
            rules and everything else that this person has made stay.
          </p>
        </Confirm>
      )}
    </>
  );
}

function Invitations() {
  const invitations = useLoad("invitations", listInvitations, ["members"]);
  const [withdrawing, setWithdrawing] = useState<Invitation | null>(null);
  if (invitations.data?.length === 0) return null;
  return (
    <Section title="Open invitations" note="Each link works once, for seven days.">
      <WhenLoaded loaded={invitations} what="invitations">
        {(list) => (
          <TableFrame label="Open invitations" stacked>
            <thead>
              <tr>
                <th scope="col">Email</th>
                <th scope="col">Role</th>
                <th scope="col">Ends</th>
                <th scope="col">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.map((invitation) => (
                <tr key={invitation._id}>
                  <td class="name">{invitation.email}</td>
                  <td data-label="Role">
                    <Pill tone={invitation.role === "viewer" ? "idle" : "accent"}>{invitation.role}</Pill>
                  </td>
                  <td data-label="Ends">
                    <Time at={invitation.expiresAt} />
                  </td>
                  <td class="row-actions">
                    <Button
                      icon="trash"
                      look="quiet"
                      small
                      label={`Withdraw the invitation of ${invitation.email}`}
                      onClick={() => setWithdrawing(invitation)}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </TableFrame>
        )}
      </WhenLoaded>
      {withdrawing !== null && (
        <Confirm
          title="Withdraw invitation"
          action="Withdraw"
          onClose={() => setWithdrawing(null)}
          onConfirm={async () => {
            await withdrawInvitation(withdrawing._id);
            notify(`The invitation of ${withdrawing.email} no longer works.`);
            setWithdrawing(null);
            invitations.reload();
          }}
        >
          <p>
            The link that was sent to <strong class="name">{withdrawing.email}</strong> no longer works.
          </p>
        </Confirm>
      )}
    </Section>
  );
}

const roleOf = (value: string): Role => ROLES.find((role) => role === value) ?? "viewer";

function Invite({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("editor");
  const [made, setMade] = useState<Link | null>(null);
  const { run, running, error } = useAction(async () => {
    setMade(await invite(email, role));
  });
  if (made !== null) {
    return (
      <ShownOnce title={`Invitation for ${email.trim()}`} what="link" value={made.url} onClose={onClose}>
        <p class="hint">
          Send it to the person: whoever has it makes the account. It works once, until <Time at={made.expiresAt} />.
        </p>
      </ShownOnce>
    );
  }
  return (
    <Dialog title="Invite" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Email"
          type="email"
          value={email}
          onInput={setEmail}
          autocomplete="off"
          required
          hint="Nothing is sent: you get a link"
          fault={faultAt(error, "email")}
        />
        <SelectField
          label="Role"
          value={role}
          onChange={(value) => setRole(roleOf(value))}
          options={ROLE_OPTIONS}
          fault={faultAt(error, "role")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "email" || at === "role"} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            Create link
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function ChangeRole({ member, onClose }: { member: Member; onClose: () => void }) {
  const [role, setRole] = useState<Role>(member.role);
  const { run, running, error } = useAction(async () => {
    const changed = await changeRole(member._id, role);
    const current = session.get();
    // The page of the user who has changed the own role is that of the new one.
    if (current && current.user._id === member._id) session.set({ ...current, user: { ...current.user, role } });
    notify(`${changed.name} is now ${role === "viewer" ? "a" : "an"} ${role}.`);
    onClose();
  });
  return (
    <Dialog title={`Role of ${member.name}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <SelectField
          label="Role"
          value={role}
          onChange={(value) => setRole(roleOf(value))}
          options={ROLE_OPTIONS}
          fault={faultAt(error, "role")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "role"} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running} disabled={role === member.role}>
            Change role
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Reset({ member, onClose }: { member: Member; onClose: () => void }) {
  const [made, setMade] = useState<Link | null>(null);
  const { run, running, error } = useAction(async () => {
    setMade(await createReset(member._id));
  });
  if (made !== null) {
    return (
      <ShownOnce title={`New password for ${member.name}`} what="link" value={made.url} onClose={onClose}>
        <p class="hint">
          Send it to {member.email}: whoever has it sets the password. It works once, until <Time at={made.expiresAt} />.
        </p>
      </ShownOnce>
    );
  }
  return (
    <Dialog title="Reset password" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <p>
          With a link, <strong class="name">{member.name}</strong> sets a new password. The present one works until then; an
          earlier link ends.
        </p>
        <ErrorBox error={error} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            Create link
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
