/** Rules with their states, one a row. */
import type { Rule } from "../api/rules";
import { TableFrame } from "../parts/page";
import { Ago } from "../parts/show";
import { RuleStatePill, RuleTimers } from "./rule-state";

interface RuleTableProps {
  label: string;
  rules: Rule[];
  /** Null where all rules are of one bucket. */
  bucketNames: Map<string, string> | null;
}

export function RuleTable({ label, rules, bucketNames }: RuleTableProps) {
  return (
    <TableFrame label={label} stacked>
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
        {rules.map((rule) => (
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
  );
}
