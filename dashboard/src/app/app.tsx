/** Which page the route names. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { AccountPage } from "../pages/account";
import { BucketPage } from "../pages/bucket";
import { BucketsPage } from "../pages/buckets";
import { InvitationPage, ResetPage } from "../pages/links";
import { OrganizationPage } from "../pages/organization";
import { OverviewPage } from "../pages/overview";
import { RulePage } from "../pages/rule";
import { EditRulePage, NewRulePage } from "../pages/rule-edit";
import { RulesPage } from "../pages/rules";
import { SignInPage } from "../pages/sign-in";
import { SourcePage } from "../pages/source";
import { EditSourcePage, NewSourcePage } from "../pages/source-edit";
import { WebhookPage } from "../pages/webhook";
import { WebhooksPage } from "../pages/webhooks";
import { LinkButton } from "../parts/button";
import { Empty, Page } from "../parts/page";
import { followChanges } from "./changes";
import { noteCharted } from "./first-chart";
import { LeaveQuestion } from "./leave-question";
import { Deferred } from "./deferred";
import { useRoute } from "./route";
import { session } from "./session";
import { Shell } from "./shell";
import { useStore } from "./store";

/** After the first page's own requests. */
const IDLE_MS = 1500;

/** Chart and explorer are a third of the script, and the login page needs none of it. */
const explorer = () => import("../explorer/page").then((module) => module.ExplorerPage);

/** The pages of boards, of which the page of a link is one. */
const boards = () => import("../boards/section").then((module) => module.BoardsSection);
const shared = () => import("../boards/section").then((module) => module.SharedPage);

/** For few of those who open the dashboard. */
const operator = () => import("../pages/operator").then((module) => module.OperatorPage);

export function App() {
  const current = useStore(session);
  const { path, search } = useRoute();
  useEffect(() => {
    // Fetched ahead in a quiet moment, so that the way to the first chart is short.
    if (current) setTimeout(() => void explorer().catch(() => undefined), IDLE_MS);
  }, [current]);
  const userId = current?.user._id;
  useEffect(() => (userId === undefined ? undefined : followChanges()), [userId]);
  const charting = path[0] === "explore" && search.has("f");
  useEffect(() => {
    if (charting && userId !== undefined) noteCharted(userId);
  }, [charting, userId]);
  // Of the server, not of an organization: whoever is logged in, or nobody.
  if (path[0] === "operator") return <Deferred load={operator} title="Operator" />;
  // For whoever has the link, logged in or not.
  if (path[0] === "shared") return <Deferred load={shared} title="Board" />;
  // Whoever follows a link may be logged in as somebody else, or as nobody.
  if (path[0] === "invitation" && path[1] !== undefined) return <InvitationPage key={path[1]} token={path[1]} />;
  if (path[0] === "reset" && path[1] !== undefined) return <ResetPage key={path[1]} token={path[1]} />;
  if (current === undefined) return null;
  if (current === null) return <SignInPage wanted={path[0] === "signup"} />;
  return (
    <>
      <Shell key={userId} section={path[0] ?? ""} user={current.user}>
        {/* A page of another path is another page: nothing of the old one's state stays. */}
        <div key={path.join("/")}>{pageOf(path)}</div>
      </Shell>
      <LeaveQuestion />
    </>
  );
}

function pageOf(path: string[]): ComponentChildren {
  const [section, id, part, partId, verb] = path;
  switch (section) {
    case undefined:
    case "login":
    case "signup":
      return <OverviewPage />;
    case "explore":
      return <Deferred load={explorer} title="Explorer" />;
    case "boards":
      return <Deferred load={boards} title="Boards" />;
    case "buckets":
      if (id === undefined) return <BucketsPage />;
      if (part === "sources" && partId === "new") return <NewSourcePage bucketId={id} />;
      if (part === "sources" && partId !== undefined && verb === "edit")
        return <EditSourcePage bucketId={id} sourceId={partId} />;
      if (part === "sources" && partId !== undefined) return <SourcePage bucketId={id} sourceId={partId} />;
      return <BucketPage id={id} tab={part ?? "activity"} />;
    case "rules":
      if (id === undefined) return <RulesPage />;
      if (id === "new") return <NewRulePage />;
      return part === "edit" ? <EditRulePage id={id} /> : <RulePage id={id} />;
    case "webhooks":
      return id === undefined ? <WebhooksPage /> : <WebhookPage id={id} />;
    case "organization":
      return <OrganizationPage />;
    case "account":
      return <AccountPage />;
    default:
      return (
        <Page title="No such page">
          <Empty
            title="There is no page at this address"
            action={<LinkButton href="#/">Go to the overview</LinkButton>}
          >
            The link may be old or mistyped.
          </Empty>
        </Page>
      );
  }
}
