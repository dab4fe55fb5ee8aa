/** Asks for the operator's token, or says how the server gets one. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { hasOperator, readCluster } from "../api/operator";
import { useAction, useLoad } from "../app/load";
import { keepToken, tokenNotice } from "../app/operator";
import { useStore } from "../app/store";
import { setTitle } from "../app/title";
import { Button } from "../parts/button";
import { ErrorBox } from "../parts/forms";
import { LoadError } from "../parts/page";
import { PasswordField } from "../parts/password";
import { Snippet } from "../parts/show";
import { SignInFrame } from "./sign-in-frame";

const SETTING = `[operator]
token = "…"`;

export function OperatorToken() {
  const operator = useLoad("operator", hasOperator);
  useEffect(() => setTitle("Operator"), []);
  return (
    <SignInFrame>
      {operator.data !== null ? (
        operator.data ? (
          <TokenForm />
        ) : (
          <NoOperator />
        )
      ) : (
        operator.error !== null && <LoadError error={operator.error} what="page" onRetry={operator.reload} />
      )}
    </SignInFrame>
  );
}

function TokenForm() {
  const form = useRef<HTMLFormElement>(null);
  const notice = useStore(tokenNotice);
  const [token, setToken] = useState("");
  const { run, running, error } = useAction(() => tryToken(token.trim()));
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  const refused = error instanceof ApiError && error.status === 401;
  return (
    <form
      ref={form}
      class="card sign-in-card"
      aria-label="Operator"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <h1>Operator</h1>
      {notice !== null && (
        <p class="notice-box" role="status">
          {notice}
        </p>
      )}
      <p class="hint">For whoever runs this server: its organizations, nodes and shards.</p>
      <PasswordField
        label="Operator token"
        value={token}
        onInput={setToken}
        autocomplete="off"
        required
        hint={
          <>
            The value of <code>operator.token</code> in the server's configuration. The page forgets it when it is closed
            or loaded again
          </>
        }
        fault={refused ? "this is not the token of this server" : null}
      />
      {!refused && <ErrorBox error={error} />}
      <Button type="submit" look="primary" busy={running}>
        Continue
      </Button>
      <Back />
    </form>
  );
}

function NoOperator() {
  return (
    <div class="card sign-in-card">
      <h1>Operator</h1>
      <p>
        This page is closed: the server's configuration has no <code>operator.token</code>. Set one that is long and
        random, and restart the server.
      </p>
      <Snippet title="tidewatch.toml" code={SETTING} />
      <p class="hint">
        Or in its environment: <code>TIDEWATCH_OPERATOR__TOKEN</code>
      </p>
      <Back />
    </div>
  );
}

const Back = () => (
  <p class="hint">
    <a href="#/">Back to the dashboard</a>
  </p>
);

/** Keeps the token if the server takes it, also when the server cannot answer the rest just now. */
async function tryToken(token: string): Promise<void> {
  // No other character fits into a header, or was ever accepted.
  if (!/^[\x21-\x7e]+$/.test(token)) throw new ApiError(401, "Unauthorized", "not a token");
  try {
    await readCluster(token);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 503) throw error;
  }
  keepToken(token);
}
