/** A bucket's analytics over a period. */
import { useState } from "preact/hooks";
import { PERIODS, bucketAnalytics, type BucketAnalytics, type Period } from "../api/analytics";
import { formatCompact, formatCount, formatValue } from "../app/format";
import { useInterval, useLoad } from "../app/load";
import { IfMay } from "../app/role";
import { exploreHref } from "../explorer/state";
import { HourBars } from "../parts/bars";
import { LinkButton } from "../parts/button";
import { byMoment, byNumber, byText, Listed, useListing } from "../parts/listing";
import { Empty, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago, Figure } from "../parts/show";

const RELOAD_MS = 30_000;
const PERIOD_MS: Record<Period, number> = {
  "24h": 86_400_000,
  "7d": 604_800_000,
  "30d": 2_592_000_000,
  "90d": 7_776_000_000,
};

export function BucketActivity({ bucketId }: { bucketId: string }) {
  const [period, setPeriod] = useState<Period>("7d");
  const analytics = useLoad(
    `analytics ${bucketId} ${period}`,
    async (signal) => ({
      analytics: await bucketAnalytics(bucketId, period, signal),
      at: Date.now(),
    }),
    ["buckets", "sources", "rules"],
  );
  useInterval(RELOAD_MS, analytics.refresh);
  return (
    <>
      <div class="segments" role="group" aria-label="Period">
        {PERIODS.map((id) => (
          <button type="button" key={id} aria-pressed={id === period} onClick={() => setPeriod(id)}>
            {id}
          </button>
        ))}
      </div>
      <WhenLoaded loaded={analytics} what="analytics">
        {(data) => <Analytics analytics={data.analytics} at={data.at} />}
      </WhenLoaded>
    </>
  );
}

function Analytics({ analytics, at }: { analytics: BucketAnalytics; at: number }) {
  const { summary, bucket, period } = analytics;
  const listing = useListing(analytics.dataSourceStats, {
    text: ({ name, avgValues }) => [name, ...Object.keys(avgValues)].join(" "),
    orders: [
      { label: "oldest source first", compare: () => 0 },
      { label: "by name", compare: byText((source) => source.name) },
      { label: "by points", compare: byNumber((source) => source.dataPointCount) },
      { label: "by newest point", compare: byMoment((source) => source.lastDataPoint) },
    ],
  });
  if (summary.dataSources === 0) {
    return (
      <Empty
        title="No sources yet"
        action={
          <IfMay>
            <LinkButton href={`#/buckets/${bucket._id}/sources/new`} look="primary" icon="plus">
              Create a source
            </LinkButton>
          </IfMay>
        }
      >
        A source says which fields a sensor measures; then it can send.
      </Empty>
    );
  }
  const most = Math.max(1, ...analytics.alertActivity.byRule.map((rule) => rule.count));
  return (
    <>
      <Section title="Points per hour" class="card">
        <dl class="figures">
          <Figure label="In the period">{formatCompact(summary.dataPointsInPeriod)}</Figure>
          <Figure label="Average per day">{formatCompact(Math.round(summary.avgDataPointsPerDay))}</Figure>
          <Figure label="Active rules">{formatCount(summary.activeAlerts)}</Figure>
          <Figure label="Triggers">{formatCount(analytics.alertActivity.totalTriggered)}</Figure>
        </dl>
        <HourBars
          label={`Points per hour, last ${period}`}
          hours={analytics.ingestionRate.dataPointsPerHour}
          from={at - PERIOD_MS[period]}
          to={at}
        />
      </Section>
      <Section title="Sources in the period">
        <Listed listing={listing} one="source" label="Sources in the period">
          <TableFrame label="Sources in the period" capped>
            <thead>
              <tr>
                <th scope="col">Source</th>
                <th scope="col">Field</th>
                <th scope="col" class="number wide-only">
                  Least
                </th>
                <th scope="col" class="number">
                  Mean
                </th>
                <th scope="col" class="number wide-only">
                  Greatest
                </th>
                <th scope="col" class="number wide-only">
                  Points
                </th>
                <th scope="col">Newest</th>
              </tr>
            </thead>
            {listing.shown.map((source) => {
              const fields = Object.keys(source.avgValues);
              const rows = fields.length === 0 ? [null] : fields;
              return (
                <tbody key={source._id} class="group">
                  {rows.map((field, index) => (
                    <tr key={field ?? ""}>
                      {index === 0 && (
                        <th scope="rowgroup" rowSpan={rows.length}>
                          <a class="name" href={`#/buckets/${bucket._id}/sources/${source._id}`}>
                            {source.name}
                          </a>
                        </th>
                      )}
                      <td class="name">
                        {field === null ? (
                          <span class="muted">nothing in this period</span>
                        ) : (
                          <a
                            href={exploreHref(
                              [{ bucketId: bucket._id, sourceId: source._id, field }],
                              period === "90d" ? { kind: "last", preset: "90d" } : { kind: "last", preset: period },
                            )}
                          >
                            {field}
                          </a>
                        )}
                      </td>
                      <td class="number wide-only">{valueOf(source.minValues, field)}</td>
                      <td class="number">{valueOf(source.avgValues, field)}</td>
                      <td class="number wide-only">{valueOf(source.maxValues, field)}</td>
                      {index === 0 && (
                        <>
                          <td class="number wide-only" rowSpan={rows.length}>
                            {formatCount(source.dataPointCount)}
                          </td>
                          <td class="nowrap" rowSpan={rows.length}>
                            <Ago at={source.lastDataPoint} />
                          </td>
                        </>
                      )}
                    </tr>
                  ))}
                </tbody>
              );
            })}
          </TableFrame>
        </Listed>
      </Section>
      {analytics.alertActivity.byRule.length > 0 && (
        <Section title="Triggers by rule" class="card">
          <ul class="rank">
            {analytics.alertActivity.byRule.map((rule, index) => (
              <li key={index}>
                <span class="name">{rule.name}</span>
                <span class="rank-bar" aria-hidden="true">
                  <span style={{ width: `${(rule.count / most) * 100}%` }} />
                </span>
                <span class="number">{formatCount(rule.count)}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function valueOf(values: Record<string, number>, field: string | null): string {
  const value = field === null ? undefined : values[field];
  return value === undefined ? "–" : formatValue(value);
}
