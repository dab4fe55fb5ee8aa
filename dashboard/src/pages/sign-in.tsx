/** Log in and sign up. */
import { useEffect, useRef, useState } from "preact/hooks";
import { logIn, signUp, signUpState } from "../api/accounts";
import { useAction, useLoad } from "../app/load";
import { go, useRoute } from "../app/route";
import { beginSession, sessionNotice } from "../app/session";
import { useStore } from "../app/store";
import { setTitle } from "../app/title";
import { Button } from "../parts/button";
import { ErrorBox, TextField, faultAt } from "../parts/forms";
import { PasswordField } from "../parts/password";
import { SignInFrame } from "./sign-in-frame";

const AT_FIELDS = ["email", "password", "name", "organizationName"];

/** `wanted`: the link to sign up was followed. */
export function SignInPage({ wanted }: { wanted: boolean }) {
  const state = useLoad("sign-up", signUpState);
  // A log-in form where nobody can log in would flash up on an empty server.
  if (state.data === null && state.error === null && !state.slow) return null;
  const open = state.data?.open ?? false;
  const first = state.data?.first ?? false;
  return <SignIn signingUp={open && (wanted || first)} open={open} first={first} refused={wanted && !open} />;
}

interface SignInProps {
  signingUp: boolean;
  open: boolean;
  first: boolean;
  refused: boolean;
}

function SignIn({ signingUp, open, first, refused }: SignInProps) {
  const { path } = useRoute();
  const form = useRef<HTMLFormElement>(null);
  const notice = useStore(sessionNotice);
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [name, setName] = useState("");
  const [organizationName, setOrganizationName] = useState("");
  const title = signingUp ? (first ? "Create the first account" : "Create an account") : "Log in";
  useEffect(() => setTitle(title), [title]);

  const { run, running, error, clear } = useAction(async () => {
    const answer = signingUp
      ? await signUp({ email, password, name, ...(organizationName.trim() === "" ? {} : { organizationName }) })
      : await logIn(email, password);
    // Whoever was sent here from a page comes back to it.
    if (path[0] === "login" || path[0] === "signup") go("#/");
    beginSession(answer);
  });
  useEffect(clear, [signingUp]);
  useEffect(() => form.current?.querySelector("input")?.focus(), [signingUp]);

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
        {notice !== null && !signingUp && (
          <p class="notice-box" role="status">
            {notice}
          </p>
        )}
        {signingUp && first && <p class="hint">This server has no accounts yet. Create the first one.</p>}
        {refused && (
          <p class="notice-box" role="status">
            Sign-up is closed on this server. Whoever runs it can open it.
          </p>
        )}
        {signingUp && (
          <TextField
            label="Your name"
            value={name}
            onInput={setName}
            autocomplete="name"
            required
            fault={faultAt(error, "name")}
          />
        )}
        <TextField
          label="Email"
          type="email"
          value={email}
          onInput={setEmail}
          autocomplete="username"
          required
          fault={faultAt(error, "email")}
        />
        <PasswordField
          label="Password"
          value={password}
          onInput={setPassword}
          autocomplete={signingUp ? "new-password" : "current-password"}
          required
          hint={signingUp ? "10 to 128 characters" : undefined}
          fault={faultAt(error, "password")}
        />
        {signingUp && (
          <TextField
            label="Organization"
            value={organizationName}
            onInput={setOrganizationName}
            autocomplete="organization"
            hint="Optional; it can be renamed later"
            fault={faultAt(error, "organizationName")}
          />
        )}
        <ErrorBox error={error} shownAt={(at) => AT_FIELDS.includes(at)} />
        <Button type="submit" look="primary" busy={running}>
          {signingUp ? "Create account" : "Log in"}
        </Button>
        {signingUp && !first && (
          <p class="hint">
            Already have an account? <a href="#/login">Log in</a>
          </p>
        )}
        {!signingUp && open && (
          <p class="hint">
            New here? <a href="#/signup">Create an account</a>
          </p>
        )}
      </form>
      <p class="hint sign-in-foot">
        Do you run this server? <a href="#/operator">Operator</a>
      </p>
    </SignInFrame>
  );
}
