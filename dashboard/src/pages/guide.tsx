/** The first steps, from nothing to a chart, each with the way to its page. */
import { useEffect } from "preact/hooks";
import type { Overview } from "../api/analytics";
import type { Bucket } from "../api/buckets";
import { getSource, listSources, type Source } from "../api/sources";
import { listBucketKeys } from "../api/keys";
import { useInterval, useLoad } from "../app/load";
import { exploreHref } from "../explorer/state";
import { Button, LinkButton } from "../parts/button";
import { Icon } from "../parts/icon";
import { Section } from "../parts/page";

/** While somebody waits for the first point. */
const WAITING_RELOAD_MS = 3000;

interface GuideProps {
  buckets: Bucket[];
  totals: Overview["totals"];
  /** The first point is in: totals are no longer what they were. */
  onArrival: () => void;
  /** Takes the guide away; there when only looking is left to do. */
  onHide: () => void;
}

export function Guide({ buckets, totals, onArrival, onHide }: GuideProps) {
  const bucket = buckets[0];
  const inside = useLoad(
    bucket === undefined ? null : `guide ${bucket._id}`,
    async (signal) => {
      const [sources, keys] = await Promise.all([
        listSources(bucket!._id, signal),
        listBucketKeys(bucket!._id, signal),
      ]);
      return { source: newestOf(sources), hasKey: keys.some((key) => key.type === "write") };
    },
    ["sources", "keys"],
  );
  const found = inside.data?.source;
  const first = useLoad(found === undefined ? null : `first point ${found._id}`, (signal) =>
    getSource(found!.bucketId, found!._id, signal),
  );
  const source = first.data ?? found;
  const arrived = (source?.stats.totalDataPoints ?? 0) > 0;
  const hasPoints = totals.dataPoints > 0 || arrived;
  useEffect(() => {
    if (arrived && totals.dataPoints === 0) onArrival();
  }, [arrived]);
  // Points arrive from elsewhere: the step is ticked when the first is there.
  useInterval(found !== undefined && !hasPoints ? WAITING_RELOAD_MS : null, first.refresh);
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
      text: "A bucket groups related sources and sets how long their points are kept.",
      href: "#/buckets?new=1",
      action: "Create a bucket",
    },
    {
      done: hasPoints || source !== undefined,
      title: "Create a source",
      text: "A sensor or an application, with the fields that it sends.",
      href: `${home}/sources/new`,
      action: "Create a source",
      other: bucket !== undefined && (
        <>
          Telegraf, Prometheus, OpenTelemetry and MQTT create theirs themselves:{" "}
          <a href={`${home}/connect`}>connect an agent</a> instead.
        </>
      ),
    },
    {
      done: hasPoints || inside.data?.hasKey === true,
      title: "Create a write key",
      text: "Sensors authenticate with it. The source's page creates one and inserts it into the commands.",
      href: source === undefined ? `${home}/keys` : `${home}/sources/${source._id}`,
      action: "Create a key",
    },
    {
      done: hasPoints,
      title: "Send a point",
      text: "The source's page has commands and programs with the right ids, and shows when the first point arrives.",
      href: source === undefined ? home : `${home}/sources/${source._id}`,
      action: "Show the command",
    },
    {
      done: false,
      title: "See it on a chart",
      text: "Any field over any range, also live.",
      href: exploreHref(fields, { kind: "last", preset: "1h" }),
      action: "Open the explorer",
    },
  ];
  const next = steps.find((step) => !step.done);
  // Who has points already needs no list of what is done.
  const shown = totals.dataPoints > 0 ? steps.filter((step) => !step.done) : steps;
  return (
    <Section
      title="Getting started"
      class="card guide"
      note={hasPoints ? "One step is left." : "Five steps, a few minutes."}
      actions={
        hasPoints && (
          <Button small look="quiet" onClick={onHide}>
            Hide the guide
          </Button>
        )
      }
    >
      <ol class="steps">
        {shown.map((step) => (
          <li
            key={step.title}
            class={step.done ? "step done" : step === next ? "step next" : "step"}
            aria-current={step === next ? "step" : undefined}
          >
            <span class="step-mark" aria-hidden="true">
              {step.done ? <Icon name="check" /> : steps.indexOf(step) + 1}
            </span>
            <div>
              <h3>
                {step.title}
                {step.done && <span class="visually-hidden"> (done)</span>}
              </h3>
              <p class="hint">
                {step.text} {step === next && step.other}
              </p>
            </div>
            {step === next && (
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

/** The source whose points are the newest, else the first of all. */
function newestOf(sources: Source[]): Source | undefined {
  const at = (source: Source) => Date.parse(source.stats.lastDataPoint ?? "") || 0;
  return [...sources].sort((a, b) => at(b) - at(a))[0];
}
