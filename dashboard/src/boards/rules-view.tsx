/** Where the rules of a bucket stand, those that need a look first. */
import type { PanelRule } from "../api/boards";
import { Ago, Pill } from "../parts/show";
import { StatePill } from "../pages/rule-state";

const URGENCY = ["firing", "clearing", "armed", "unevaluated"];

/** `linked`: to the rules' own pages, which need a log-in. */
export function RulesView({ rules, linked }: { rules: PanelRule[]; linked: boolean }) {
  if (rules.length === 0) return <p class="panel-note">The bucket has no alert rules.</p>;
  const sorted = [...rules].sort(
    (a, b) => URGENCY.indexOf(a.state) - URGENCY.indexOf(b.state) || a.name.localeCompare(b.name),
  );
  return (
    <ul class="panel-rules">
      {sorted.map((rule) => (
        <li key={rule._id}>
          {rule.status === "active" ? <StatePill state={rule.state} /> : <Pill tone="idle">{rule.status}</Pill>}
          {rule.overdue && <Pill tone="warn">overdue</Pill>}
          {linked ? (
            <a class="name" href={`#/rules/${rule._id}`}>
              {rule.name}
            </a>
          ) : (
            <span class="name">{rule.name}</span>
          )}
          <span class="muted">
            {rule.lastTriggeredAt === null ? "never fired" : <>fired <Ago at={rule.lastTriggeredAt} /></>}
          </span>
        </li>
      ))}
    </ul>
  );
}
