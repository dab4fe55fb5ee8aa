/** Rules that fire, or of which nobody can say whether they should. */
import type { Bucket } from "../api/buckets";
import { knownRules } from "../app/firing";
import { plural } from "../app/format";
import { useNow } from "../app/load";
import { useStore } from "../app/store";
import { LinkButton } from "../parts/button";
import { Section } from "../parts/page";
import { byUrgency, needsALook, useClearing } from "./rule-state";
import { RuleTable } from "./rule-table";

const NOW_MS = 5000;
const ROWS_MAX = 8;

const ALL_RULES = (
  <LinkButton href="#/rules" small>
    All rules
  </LinkButton>
);

export function OverviewRules({ buckets }: { buckets: Bucket[] }) {
  const now = useNow(NOW_MS);
  const known = useStore(knownRules);
  useClearing(known?.rules, () => known?.reload());
  const troubled = (known?.rules ?? []).filter((rule) => needsALook(rule, now)).sort(byUrgency);
  const active = (known?.rules ?? []).filter(({ status }) => status === "active").length;
  if (active === 0) return null;
  if (troubled.length === 0) {
    return (
      <Section title="Rules that need attention" note={`None of ${plural(active, "active rule")}.`} actions={ALL_RULES}>
        {null}
      </Section>
    );
  }
  const more = troubled.length - ROWS_MAX;
  return (
    <Section title="Rules that need attention" actions={ALL_RULES}>
      <RuleTable
        label="Rules that need attention"
        rules={troubled.slice(0, ROWS_MAX)}
        bucketNames={new Map(buckets.map((bucket) => [bucket._id, bucket.name]))}
      />
      {more > 0 && <p class="hint">{plural(more, "more rule")} among all rules.</p>}
    </Section>
  );
}
