/** The chart of a rule and the panel under its form, whose scripts come when they are needed, as the explorer's do. */
import type { ComponentType } from "preact";
import { useLoad } from "../app/load";
import { WhenLoaded } from "../parts/page";
import type { RuleChartProps } from "./chart";
import type { RulePanelProps } from "./panel";

export const LazyRuleChart = (props: RuleChartProps) => (
  <Lazy name="rule chart" load={async () => (await import("./chart")).RuleChart} props={props} />
);

export const LazyRulePanel = (props: RulePanelProps) => (
  <Lazy name="rule panel" load={async () => (await import("./panel")).RulePanel} props={props} />
);

interface LazyProps<P> {
  name: string;
  load: () => Promise<ComponentType<P>>;
  props: P;
}

function Lazy<P extends object>({ name, load, props }: LazyProps<P>) {
  // Wrapped: a component is a function, and a state setter would call it.
  const loaded = useLoad(name, async () => ({ Loaded: await load() }));
  return (
    <WhenLoaded loaded={loaded} what="chart">
      {({ Loaded }) => <Loaded {...props} />}
    </WhenLoaded>
  );
}
