/** What the links that owners send lead to: joining an organization, and setting a new password. Without a login. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { acceptInvitation, resetPassword, type SignedIn } from "../api/accounts";
import { ApiError } from "../api/client";
import { useAction } from "../app/load";
import { go } from "../app/route";
import { beginSession } from "../app/session";
import { setTitle } from "../app/title";
import { Button } from "../parts/button";
import { ErrorBox, TextField, faultAt } from "../parts/forms";
import { PasswordField } from "../parts/password";
import { SignInFrame } from "./sign-in-frame";

export function InvitationPage({ token }: { token: string }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  return (
    <LinkForm
      title="Join the organization"
      action="Create account"
      gone="This invitation was used or withdrawn, or is older than seven days. Ask for another one."
      at={["name", "password"]}
      send={() => acceptInvitation({ token, name, password })}
    >
      {(error) => (
        <>
          <TextField
            label="Your name"
            value={name}
            onInput={setName}
            autocomplete="name"
            required
            fault={faultAt(error, "name")}
          />
          <PasswordField
            label="Password"
            value={password}
            onInput={setPassword}
            autocomplete="new-password"
            required
            hint="10 to 128 characters"
            fault={faultAt(error, "password")}
          />
        </>
      )}
    </LinkForm>
  );
}

export function ResetPage({ token }: { token: string }) {
  const [password, setPassword] = useState("");
  return (
    <LinkForm
      title="Set a new password"
      action="Set password"
      gone="This link was used or replaced by a newer one, or is older than a day. Ask an owner for another one."
      at={["newPassword"]}
      send={() => resetPassword(token, password)}
    >
      {(error) => (
        <PasswordField
          label="New password"
          value={password}
          onInput={setPassword}
          autocomplete="new-password"
          required
          hint="10 to 128 characters; you will be logged out everywhere else"
          fault={faultAt(error, "newPassword")}
        />
      )}
    </LinkForm>
  );
}

interface LinkFormProps {
  title: string;
  action: string;
  /** What to say when the server does not know the link. */
  gone: string;
  /** The members of the body whose faults stand at their fields. */
  at: string[];
  send: () => Promise<SignedIn>;
  children: (error: Error | null) => ComponentChildren;
}

function LinkForm({ title, action, gone, at, send, children }: LinkFormProps) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => setTitle(title), [title]);
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  const { run, running, error } = useAction(async () => {
    const answer = await send();
    go("#/");
    beginSession(answer);
  });
  const isGone = error instanceof ApiError && error.status === 404;
  return (
    <SignInFrame>
      <form
        ref={form}
        class="card sign-in-card"
        aria-label={title}
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <h1>{title}</h1>
        {children(error)}
        {isGone ? (
          <p class="error-box" role="alert">
            <span>{gone}</span>
          </p>
        ) : (
          <ErrorBox error={error} shownAt={(place) => at.includes(place)} />
        )}
        <Button type="submit" look="primary" busy={running}>
          {action}
        </Button>
        <p class="hint">
          Already have an account? <a href="#/login">Log in</a>
        </p>
      </form>
    </SignInFrame>
  );
}
