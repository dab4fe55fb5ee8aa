/** The organization: its name, its plan, and the keys that span it. */
import type { NewKey } from "../api/keys";
import {
  createOrganizationKey,
  deleteOrganizationKey,
  getOrganization,
  listOrganizationKeys,
  renameOrganization,
  rotateOrganizationKey,
  type Organization,
  type OrganizationKeyType,
} from "../api/organization";
import { useDraft } from "../app/draft";
import { formatCount, plural } from "../app/format";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { useMay } from "../app/role";
import { Button } from "../parts/button";
import { ErrorBox, TextField, faultAt } from "../parts/forms";
import { Page, Section, WhenLoaded } from "../parts/page";
import { Pill, Snippet, Time } from "../parts/show";
import { evaluateCommand } from "../parts/snippets";
import { Audit } from "./audit";
import { KeyList, type KeyRoutes } from "./key-list";
import { Members } from "./members";

const KEYS: KeyRoutes = {
  id: "organization",
  title: "Organization keys",
  note: "Admin keys give access to everything. Integration keys are for evaluators; their calls are free.",
  types: [
    { value: "integration", label: "integration: an evaluator asks for due rules, reads points and posts verdicts" },
    { value: "admin", label: "admin: everything, in every bucket" },
  ],
  role: "owner",
  list: listOrganizationKeys,
  create: (key) => createOrganizationKey(key as NewKey<OrganizationKeyType>),
  rotate: rotateOrganizationKey,
  remove: deleteOrganizationKey,
};

export function OrganizationPage() {
  const organization = useLoad("organization", getOrganization, ["organization"]);
  const isOwner = useMay("owner");
  return (
    <Page title="Organization">
      <WhenLoaded loaded={organization} what="organization">
        {(data) => (
          <div class="columns">
            <Name key={data.name} organization={data} onChanged={organization.reload} />
            <Plan organization={data} />
          </div>
        )}
      </WhenLoaded>
      <Members />
      <KeyList routes={KEYS} />
      <Section
        title="Run an evaluator"
        note="An evaluator evaluates the rules that are due. It needs an integration key. You can run several: they share the work."
      >
        <Snippet title="Shell" code={evaluateCommand(location.origin)} />
      </Section>
      {isOwner && <Audit />}
    </Page>
  );
}

function Name({ organization, onChanged }: { organization: Organization; onChanged: () => void }) {
  const { value, change, done } = useDraft("organization name", { name: organization.name });
  const mayRename = useMay("owner");
  const { run, running, error } = useAction(async () => {
    const renamed = await renameOrganization(value.name);
    done();
    notify(`The organization is now called “${renamed.name}”.`);
    onChanged();
  });
  return (
    <Section title="Name" class="card">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Name of the organization"
          value={value.name}
          onInput={(name) => change({ name })}
          required
          maxLength={200}
          disabled={!mayRename}
          fault={faultAt(error, "name")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "name"} />
        {mayRename && (
          <div class="actions">
            <Button type="submit" busy={running} disabled={value.name.trim() === organization.name}>
              Rename
            </Button>
          </div>
        )}
      </form>
      <p class="hint">
        Since <Time at={organization.createdAt} />
      </p>
    </Section>
  );
}

function Plan({ organization: { plan } }: { organization: Organization }) {
  return (
    <Section title="Plan" class="card" actions={<Pill tone="accent">{plan.name}</Pill>}>
      <dl class="rows">
        <div>
          <dt>Buckets</dt>
          <dd>{plan.maxBuckets === null ? "no limit" : formatCount(plan.maxBuckets)}</dd>
        </div>
        <div>
          <dt>Retention</dt>
          <dd>{plan.maxRetentionDays === null ? "as long as you like" : plural(plan.maxRetentionDays, "day")}</dd>
        </div>
        <div>
          <dt>API calls a month</dt>
          <dd>{plan.maxApiCalls === null ? "no limit" : formatCount(plan.maxApiCalls)}</dd>
        </div>
      </dl>
      <p class="hint">
        Whoever runs this server changes plans, on the <a href="#/operator/organizations">operator's page</a>. Looking at
        the dashboard uses up no calls.
      </p>
    </Section>
  );
}
