/** The operator's page: the organizations and the cluster, for whoever has the token of the server's configuration. */
import type { ComponentChildren } from "preact";
import { forgetToken, operatorToken } from "../app/operator";
import { Notices } from "../app/notices";
import { useRoute } from "../app/route";
import { Switches } from "../app/shell";
import { useStore } from "../app/store";
import { Button } from "../parts/button";
import { Logo } from "../parts/icon";
import { Page } from "../parts/page";
import { ClusterPart } from "./operator-cluster";
import { OrganizationsPart } from "./operator-organizations";
import { OperatorToken } from "./operator-token";

const TABS = [
  { id: "cluster", label: "Cluster", href: "#/operator" },
  { id: "organizations", label: "Organizations", href: "#/operator/organizations" },
];

export function OperatorPage() {
  const token = useStore(operatorToken);
  const { path } = useRoute();
  if (token === null) return <OperatorToken />;
  const tab = path[1] ?? "cluster";
  return (
    <Frame>
      <Page
        title="Operator"
        actions={
          <Button icon="leave" onClick={() => forgetToken(null)}>
            Forget the token
          </Button>
        }
      >
        <nav class="tabs" aria-label="Parts of the server">
          {TABS.map(({ id, label, href }) => (
            <a key={id} href={href} aria-current={tab === id ? "page" : undefined}>
              {label}
            </a>
          ))}
        </nav>
        {tab === "organizations" ? <OrganizationsPart /> : <ClusterPart />}
      </Page>
    </Frame>
  );
}

function Frame({ children }: { children: ComponentChildren }) {
  return (
    <div class="operator">
      <header class="operator-head">
        <a class="brand" href="#/" aria-label="tidewatch: go to the overview">
          <Logo />
          <span>tidewatch</span>
        </a>
        <Switches />
      </header>
      <Notices />
      <main class="main">{children}</main>
    </div>
  );
}
