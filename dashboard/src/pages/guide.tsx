/** The first steps, from nothing to a chart, each with the way to its page. */
import type { Overview } from "../api/analytics";
import type { Bucket } from "../api/buckets";
import { listSources } from "../api/sources";
import { listBucketKeys } from "../api/keys";
import { useInterval, useLoad } from "../app/load";
import { exploreHref } from "../explorer/state";
import { LinkButton } from "../parts/button";
import { Icon } from "../parts/icon";
import { Section } from "../parts/page";

export function Guide({ buckets, totals }: { buckets: Bucket[]; totals: Overview["totals"] }) {
  const bucket = buckets[0];
  const inside = useLoad(bucket === undefined ? null : `guide ${bucket._id}`, async (signal) => {
    const [sources, keys] = await Promise.all([listSources(bucket!._id, signal), listBucketKeys(bucket!._id, signal)]);
    return { source: sources[0], hasKey: keys.some((key) => key.type === "write") };
  });
  // Points arrive from elsewhere: the step is ticked when the first is there.
  useInterval(totals.dataSources > 0 ? 5000 : null, inside.reload);
  const source = inside.data?.source;
  const hasPoints = (source?.stats.totalDataPoints ?? 0) > 0;
  const home = bucket === undefined ? "#/buckets" : `#/buckets/${bucket._id}`;
  const fields =
    source === undefined
      ? []
      : Object.keys(source.schema)
          .slice(0, 2)
          .map((field) => ({ bucketId: source.bucketId, sourceId: source._id, field }));
  const steps = [
    {
      done: bucket !== undefined,
      title: "Create a bucket",
      text: "It holds sources that belong together, and says how long their points are kept.",
      href: "#/buckets?new=1",
      action: "Create a bucket",
    },
    {
      done: source !== undefined,
      title: "Declare a source",
      text: "A sensor or an application, with the fields that it measures.",
      href: `${home}/sources/new`,
      action: "Declare a source",
    },
    {
      done: inside.data?.hasKey === true,
      title: "Make a write key",
      text: "What the sensor shows to be let in. It is shown once.",
      href: `${home}/keys`,
      action: "Make a key",
    },
    {
      done: hasPoints,
      title: "Send a point",
      text: "The source's page has a curl command and a Python program with the right ids.",
      href: source === undefined ? home : `${home}/sources/${source._id}`,
      action: "Show the command",
    },
    {
      done: false,
      title: "See it on a chart",
      text: "Any field over any range, live if you like.",
      href: exploreHref(fields, { kind: "last", preset: "1h" }),
      action: "Open the explorer",
    },
  ];
  const next = steps.findIndex((step) => !step.done);
  return (
    <Section title="From nothing to a chart" class="card guide" note="Five steps, a few minutes.">
      <ol class="steps">
        {steps.map((step, index) => (
          <li
            key={step.title}
            class={step.done ? "step done" : index === next ? "step next" : "step"}
            aria-current={index === next ? "step" : undefined}
          >
            <span class="step-mark" aria-hidden="true">
              {step.done ? <Icon name="check" /> : index + 1}
            </span>
            <div>
              <h3>
                {step.title}
                {step.done && <span class="visually-hidden"> (done)</span>}
              </h3>
              <p class="hint">{step.text}</p>
            </div>
            {index === next && (
              <LinkButton href={step.href} look="primary" small>
                {step.action}
              </LinkButton>
            )}
          </li>
        ))}
      </ol>
    </Section>
  );
}
