/** Home: the organization at a glance, and what to do first while there is nothing to see. */
import { bucketAnalytics, overview, type BucketAnalytics, type HourCount, type Overview } from "../api/analytics";
import { listBuckets, type Bucket } from "../api/buckets";
import { listSourcesOf, type Source } from "../api/sources";
import { formatCompact, formatCount, formatTime, plural } from "../app/format";
import { noteCharted, useCharted } from "../app/first-chart";
import { useInterval, useLoad } from "../app/load";
import { useMay } from "../app/role";
import { session } from "../app/session";
import { useStore } from "../app/store";
import { HourBars } from "../parts/bars";
import { LinkButton } from "../parts/button";
import { Page, Section, WhenLoaded } from "../parts/page";
import { Ago, Figure, Meter, Pill } from "../parts/show";
import { Guide } from "./guide";
import { OverviewRules } from "./overview-rules";
import { OverviewSources } from "./overview-sources";

const WEEK_MS = 7 * 86_400_000;
/** Cards with pictures; each costs a call. */
const CARDS_MAX = 12;
const RELOAD_MS = 30_000;

interface Home {
  overview: Overview;
  buckets: Bucket[];
  sources: Source[];
  analytics: Map<string, BucketAnalytics>;
  at: number;
}

async function fetchHome(signal: AbortSignal): Promise<Home> {
  const [organization, buckets] = await Promise.all([overview(signal), listBuckets(signal)]);
  const shown = buckets.slice(0, CARDS_MAX);
  const [weeks, sources] = await Promise.all([
    Promise.all(shown.map((bucket) => bucketAnalytics(bucket._id, "7d", signal))),
    listSourcesOf(
      buckets.map((bucket) => bucket._id),
      signal,
    ),
  ]);
  return {
    overview: organization,
    buckets,
    sources,
    analytics: new Map(shown.map((bucket, index) => [bucket._id, weeks[index]!])),
    at: Date.now(),
  };
}

export function OverviewPage() {
  const home = useLoad("home", fetchHome, ["organization", "buckets", "sources", "rules", "keys"]);
  useInterval(RELOAD_MS, home.refresh);
  const userId = useStore(session)?.user._id;
  const mayEdit = useMay("editor");
  const charted = useCharted(userId);
  const name = home.data?.overview.organization.name;
  return (
    <Page
      title="Overview"
      intro={name === undefined ? <span>&nbsp;</span> : <span class="name">{name}</span>}
      actions={
        <LinkButton href="#/explore" icon="explore" look="primary">
          Explore
        </LinkButton>
      }
    >
      <WhenLoaded loaded={home} what="overview">
        {(data) => (
          <>
            {mayEdit && (data.overview.totals.dataPoints === 0 || !charted) && (
              <Guide
                buckets={data.buckets}
                totals={data.overview.totals}
                onArrival={home.reload}
                onHide={() => userId !== undefined && noteCharted(userId)}
              />
            )}
            <OverviewRules buckets={data.buckets} />
            <OverviewSources sources={data.sources} buckets={data.buckets} />
            <Activity home={data} />
            <div class="columns">
              <Usage overview={data.overview} />
              <Totals overview={data.overview} />
            </div>
            <Buckets home={data} />
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

function Activity({ home }: { home: Home }) {
  const { recentActivity } = home.overview;
  return (
    <Section title="Recent activity" class="card">
      <dl class="figures">
        <Figure label="Last data">
          <Ago at={recentActivity.lastDataIngestion} />
        </Figure>
        <Figure label="Points of the last 24 h">{formatCompact(recentActivity.dataPointsLast24h)}</Figure>
        <Figure label="Last trigger">
          <Ago at={recentActivity.lastAlertTriggered} />
        </Figure>
        <Figure label="Triggers of the last 24 h">{formatCount(recentActivity.alertsTriggeredLast24h)}</Figure>
      </dl>
      {home.overview.totals.dataPoints > 0 && (
        <HourBars
          label="Points per hour of the last 7 days"
          hours={summed([...home.analytics.values()])}
          from={home.at - WEEK_MS}
          to={home.at}
        />
      )}
    </Section>
  );
}

function summed(analytics: BucketAnalytics[]): HourCount[] {
  const counts = new Map<string, number>();
  for (const { ingestionRate } of analytics) {
    for (const { hour, count } of ingestionRate.dataPointsPerHour) counts.set(hour, (counts.get(hour) ?? 0) + count);
  }
  return [...counts].map(([hour, count]) => ({ hour, count }));
}

function Usage({ overview: { usage, plan, totals } }: { overview: Overview }) {
  const month = new Date();
  const reset = Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1);
  return (
    <Section title="Plan and usage" class="card" actions={<Pill tone="accent">{plan.name}</Pill>}>
      <Meter
        label="API calls this month"
        value={usage.apiCallsThisMonth}
        max={usage.apiCallsLimit}
        text={
          usage.apiCallsLimit === null
            ? `${formatCount(usage.apiCallsThisMonth)}, no limit`
            : `${formatCount(usage.apiCallsThisMonth)} of ${formatCount(usage.apiCallsLimit)}`
        }
        note={
          usage.apiCallsLimit === null
            ? undefined
            : `${usage.apiCallsPercentage ?? 0} %; starts anew on ${formatTime(reset, "utc").slice(0, 10)}, 00:00 UTC`
        }
      />
      <Meter
        label="Buckets"
        value={totals.buckets}
        max={plan.maxBuckets}
        text={plan.maxBuckets === null ? `${totals.buckets}, no limit` : `${totals.buckets} of ${plan.maxBuckets}`}
      />
      <dl class="rows">
        <div>
          <dt>Storage</dt>
          <dd title={`${formatCount(usage.storageUsedBytes)} bytes`}>{usage.storageUsedFormatted}</dd>
        </div>
        <div>
          <dt>Retention</dt>
          <dd>
            {plan.maxRetentionDays === null ? "as long as you like" : `up to ${plural(plan.maxRetentionDays, "day")}`}
          </dd>
        </div>
      </dl>
    </Section>
  );
}

function Totals({ overview: { totals, usage } }: { overview: Overview }) {
  const perPoint = totals.dataPoints === 0 ? null : usage.storageUsedBytes / totals.dataPoints;
  return (
    <Section title="Contents" class="card">
      <dl class="figures two">
        <Figure label="Points" note={perPoint === null ? undefined : `${perPoint.toFixed(1)} bytes each on disk`}>
          {formatCompact(totals.dataPoints)}
        </Figure>
        <Figure label="Sources">{formatCount(totals.dataSources)}</Figure>
        <Figure label="Alert rules">{formatCount(totals.alertRules)}</Figure>
        <Figure label="API keys">{formatCount(totals.apiKeys)}</Figure>
      </dl>
    </Section>
  );
}

function Buckets({ home }: { home: Home }) {
  if (home.buckets.length === 0) return null;
  return (
    <Section
      title="Buckets"
      actions={
        <LinkButton href="#/buckets" small>
          All buckets
        </LinkButton>
      }
    >
      <ul class="cards">
        {home.buckets.slice(0, CARDS_MAX).map((bucket) => {
          const week = home.analytics.get(bucket._id);
          return (
            <li class="card bucket-card" key={bucket._id}>
              <h3>
                <a class="name" href={`#/buckets/${bucket._id}`}>
                  {bucket.name}
                </a>
              </h3>
              {week !== undefined && (
                <>
                  <HourBars
                    spark
                    label="Points per hour of the last 7 days"
                    hours={week.ingestionRate.dataPointsPerHour}
                    from={home.at - WEEK_MS}
                    to={home.at}
                  />
                  <p class="card-line">
                    <span>{plural(week.summary.dataSources, "source")}</span>
                    <span>{formatCompact(week.summary.totalDataPoints)} points</span>
                    <span>{plural(week.summary.activeAlerts, "active rule")}</span>
                    {week.alertActivity.totalTriggered > 0 && (
                      <span class="bad-text">{plural(week.alertActivity.totalTriggered, "trigger")} in 7 d</span>
                    )}
                  </p>
                </>
              )}
            </li>
          );
        })}
      </ul>
    </Section>
  );
}
