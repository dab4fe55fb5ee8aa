/** Alert rules with their states: of all buckets, or of one. */
import { listAllRules, listRules, type Rule } from "../api/rules";
import { useLoad } from "../app/load";
import { IfMay } from "../app/role";
import { LinkButton } from "../parts/button";
import { byMoment, byText, Listed, useListing } from "../parts/listing";
import { Empty, Page, Section, WhenLoaded } from "../parts/page";
import { byUrgency, useClearing } from "./rule-state";
import { RuleTable } from "./rule-table";
import { Silences } from "./silences";

export function RulesPage() {
  const rules = useLoad("rules", listAllRules, ["rules", "buckets"]);
  useClearing(rules.data?.rules, rules.reload);
  return (
    <Page
      title="Alert rules"
      intro="A rule states a condition, evaluators check it, and webhooks notify you when it is met."
      actions={
        <IfMay>
          <LinkButton href="#/rules/new" icon="plus" look="primary">
            New rule
          </LinkButton>
        </IfMay>
      }
    >
      <WhenLoaded loaded={rules} what="rules">
        {(data) => (
          <>
            <RuleList
              rules={data.rules}
              bucketNames={new Map(data.buckets.map((bucket) => [bucket._id, bucket.name]))}
              createHref="#/rules/new"
            />
            <Silences rules={data.rules} buckets={data.buckets} />
          </>
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
        <IfMay>
          <LinkButton href={create} icon="plus" small>
            New rule
          </LinkButton>
        </IfMay>
      }
    >
      <WhenLoaded loaded={rules} what="rules">
        {(list) => <RuleList rules={list} bucketNames={null} createHref={create} />}
      </WhenLoaded>
    </Section>
  );
}

function RuleList({
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
          <IfMay>
            <LinkButton href={createHref} look="primary" icon="plus">
              Create the first
            </LinkButton>
          </IfMay>
        }
      >
        A rule watches a source, say “temperature exceeds 30 °C”.
      </Empty>
    );
  }
  return <FoundRules rules={rules} bucketNames={bucketNames} />;
}

function FoundRules({ rules, bucketNames }: { rules: Rule[]; bucketNames: Map<string, string> | null }) {
  const listing = useListing(rules, {
    text: ({ name, condition, bucketId }) => `${name} ${condition} ${bucketNames?.get(bucketId) ?? ""}`,
    orders: [
      { label: "firing first", compare: byUrgency },
      { label: "by name", compare: byText((rule) => rule.name) },
      { label: "by last fired", compare: byMoment((rule) => rule.lastTriggeredAt) },
    ],
  });
  return (
    <Listed listing={listing} one="rule" label="Alert rules">
      <RuleTable label="Alert rules" rules={listing.shown} bucketNames={bucketNames} />
    </Listed>
  );
}
