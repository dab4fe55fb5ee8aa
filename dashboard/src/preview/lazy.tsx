/** The chart of a rule and the panel under its form, whose scripts come when they are needed, as the explorer's do. */
import { Lazy } from "../app/lazy";
import type { RuleChartProps } from "./chart";
import type { RulePanelProps } from "./panel";

export const LazyRuleChart = (props: RuleChartProps) => (
  <Lazy name="rule chart" what="chart" load={async () => (await import("./chart")).RuleChart} props={props} />
);

export const LazyRulePanel = (props: RulePanelProps) => (
  <Lazy name="rule panel" what="chart" load={async () => (await import("./panel")).RulePanel} props={props} />
);
