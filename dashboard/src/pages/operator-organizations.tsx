/** All organizations of the server and their plans. */
import { useState } from "preact/hooks";
import { PLANS, changePlan, listOrganizations } from "../api/operator";
import type { Organization } from "../api/organization";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { asOperator } from "../app/operator";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox, SelectField, faultAt } from "../parts/forms";
import { Empty, Pager, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Pill, Time } from "../parts/show";

const PAGE_ROWS = 50;

export function OrganizationsPart() {
  const [offset, setOffset] = useState(0);
  const [changing, setChanging] = useState<Organization | null>(null);
  const page = useLoad(`operator organizations ${offset}`, (signal) =>
    asOperator((token) => listOrganizations(token, PAGE_ROWS, offset, signal)),
  );
  return (
    <Section title="Organizations" note="A plan limits buckets, retention and calls. A change counts at once.">
      <WhenLoaded loaded={page} what="organizations">
        {({ organizations, pagination }) =>
          pagination.total === 0 ? (
            <Empty title="No organizations yet">Each sign-up creates one.</Empty>
          ) : (
            <>
              <TableFrame label="Organizations" stacked>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Plan</th>
                    <th scope="col">ID</th>
                    <th scope="col">Created</th>
                    <th scope="col">
                      <span class="visually-hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {organizations.map((organization) => (
                    <tr key={organization._id}>
                      <th scope="row" class="name">
                        {organization.name}
                      </th>
                      <td data-label="Plan">
                        <Pill tone={organization.plan.name === "Free" ? "idle" : "accent"}>
                          {organization.plan.name}
                        </Pill>
                      </td>
                      <td class="mono" data-label="ID">
                        {organization._id}
                      </td>
                      <td data-label="Created">
                        <Time at={organization.createdAt} />
                      </td>
                      <td class="row-actions">
                        <Button small icon="edit" onClick={() => setChanging(organization)}>
                          Change plan<span class="visually-hidden"> of {organization.name}</span>
                        </Button>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </TableFrame>
              <Pager
                offset={offset}
                limit={PAGE_ROWS}
                total={pagination.total}
                onMove={setOffset}
                back="Previous"
                forward="Next"
              />
            </>
          )
        }
      </WhenLoaded>
      {changing !== null && (
        <ChangePlan
          organization={changing}
          onClose={() => setChanging(null)}
          onChanged={(changed) => {
            notify(`“${changed.name}” is now on the plan ${changed.plan.name}.`);
            setChanging(null);
            page.reload();
          }}
        />
      )}
    </Section>
  );
}

interface ChangePlanProps {
  organization: Organization;
  onClose: () => void;
  onChanged: (organization: Organization) => void;
}

function ChangePlan({ organization, onClose, onChanged }: ChangePlanProps) {
  const [plan, setPlan] = useState(organization.plan.name);
  const { run, running, error } = useAction(async () => {
    onChanged(await asOperator((token) => changePlan(token, organization._id, plan)));
  });
  return (
    <Dialog title="Change plan" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <SelectField
          label={`Plan of ${organization.name}`}
          value={plan}
          onChange={setPlan}
          options={PLANS}
          fault={faultAt(error, "plan")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "plan"} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running} disabled={plan === organization.plan.name}>
            Change plan
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
