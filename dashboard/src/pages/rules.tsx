/** Alert rules with their states: of all buckets, or of one. */
import { listAllRules, listRules, type Rule } from "../api/rules";
import { useLoad } from "../app/load";
import { LinkButton } from "../parts/button";
import { ListBar, ListPager, byMoment, byText, useListing } from "../parts/listing";
import { Empty, Page, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago } from "../parts/show";
import { RuleStatePill, RuleTimers, clearsAt, useClearing } from "./rule-state";

const ORDER = ["firing", "clearing", "armed", "unevaluated"];

export function RulesPage() {
  const rules = useLoad("rules", listAllRules, ["rules", "buckets"]);
  useClearing(rules.data?.rules, rules.reload);
  return (
    <Page
      title="Alert rules"
      intro="A rule says what is wrong; evaluators judge it; webhooks tell whoever has to know."
      actions={
        <LinkButton href="#/rules/new" icon="plus" look="primary">
          New rule
        </LinkButton>
      }
    >
      <WhenLoaded loaded={rules} what="rules">
        {(data) => (
          <RuleTable
            rules={data.rules}
            bucketNames={new Map(data.buckets.map((bucket) => [bucket._id, bucket.name]))}
            createHref="#/rules/new"
          />
        )}
      </WhenLoaded>
    </Page>
  );
}

export function BucketRules({ bucketId }: { bucketId: string }) {
  const rules = useLoad(`rules ${bucketId}`, (signal) => listRules(bucketId, signal), ["rules"]);
  useClearing(rules.data ?? undefined, rules.reload);
  const create = `#/rules/new?bucket=${bucketId}`;
  return (
    <Section
      title="Alert rules"
      actions={
        <LinkButton href={create} icon="plus" small>
          New rule
        </LinkButton>
      }
    >
      <WhenLoaded loaded={rules} what="rules">
        {(list) => <RuleTable rules={list} bucketNames={null} createHref={create} />}
      </WhenLoaded>
    </Section>
  );
}

function RuleTable({
  rules,
  bucketNames,
  createHref,
}: {
  rules: Rule[];
  bucketNames: Map<string, string> | null;
  createHref: string;
}) {
  if (rules.length === 0) {
    return (
      <Empty
        title="No rules yet"
        action={
          <LinkButton href={createHref} look="primary" icon="plus">
            Write the first
          </LinkButton>
        }
      >
        A rule watches a source, say “temperature exceeds 30 °C”.
      </Empty>
    );
  }
  return <Table rules={rules} bucketNames={bucketNames} />;
}

function Table({ rules, bucketNames }: { rules: Rule[]; bucketNames: Map<string, string> | null }) {
  // What burns stands first; of the rest, what is paused stands last.
  const rank = (rule: Rule) => (rule.status === "active" ? ORDER.indexOf(rule.state) : ORDER.length);
  const listing = useListing(rules, {
    text: ({ name, condition, bucketId }) => `${name} ${condition} ${bucketNames?.get(bucketId) ?? ""}`,
    orders: [
      { label: "firing first", compare: (a, b) => rank(a) - rank(b) || (clearsAt(a) ?? 0) - (clearsAt(b) ?? 0) },
      { label: "by name", compare: byText((rule) => rule.name) },
      { label: "by last fired", compare: byMoment((rule) => rule.lastTriggeredAt) },
    ],
  });
  return (
    <>
      <ListBar listing={listing} one="rule" label="Alert rules" />
      <TableFrame label="Alert rules" stacked>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Rule</th>
            {bucketNames !== null && <th scope="col">Bucket</th>}
            <th scope="col">Timers</th>
            <th scope="col">Last fired</th>
          </tr>
        </thead>
        <tbody>
          {listing.shown.map((rule) => (
            <tr key={rule._id}>
              <td data-label="State">
                <RuleStatePill rule={rule} />
              </td>
              <td class="rule-cell">
                <a class="name" href={`#/rules/${rule._id}`}>
                  {rule.name}
                </a>
                <div class="hint name">{rule.condition}</div>
              </td>
              {bucketNames !== null && (
                <td class="name muted" data-label="Bucket">
                  {bucketNames.get(rule.bucketId)}
                </td>
              )}
              <td class="timers-cell" data-label="Timers">
                <RuleTimers rule={rule} />
              </td>
              <td class="nowrap" data-label="Last fired">
                <Ago at={rule.lastTriggeredAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
      <ListPager listing={listing} />
    </>
  );
}
