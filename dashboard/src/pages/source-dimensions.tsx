/** What a source is split by: its dimensions, the values of one, and its series. */
import { useState } from "preact/hooks";
import { listDimensions, listSeries, listValues, type SourcePath } from "../api/dimensions";
import type { Source } from "../api/sources";
import { formatCompact, formatCount, plural } from "../app/format";
import { useLoad } from "../app/load";
import { labelsInWords, shownValue } from "../explorer/dimension-words";
import { exploreHref } from "../explorer/state";
import { Button, LinkButton } from "../parts/button";
import { TextField } from "../parts/forms";
import { Pager, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago } from "../parts/show";
import { dimensionsInWords } from "./source-dimensions-draft";

const PAGE_ROWS = 10;

export interface SourceDimensionsProps {
  source: Source;
}

/** A value that series must have. */
type Having = [name: string, value: string];

export function SourceDimensions({ source }: SourceDimensionsProps) {
  const [named, setNamed] = useState<string | null>(null);
  const [having, setHaving] = useState<Having | null>(null);
  const path: SourcePath = { bucketId: source.bucketId, sourceId: source._id };
  // Points bring new series; the counts say when there are any.
  const series = source.stats.seriesCount ?? 0;
  const dimensions = useLoad(`dimensions ${source._id} ${series}`, (signal) => listDimensions(path, signal));
  const fields = Object.entries(source.schema)
    .filter(([, { type }]) => type === "number")
    .slice(0, 1)
    .map(([field]) => ({ ...path, field }));
  return (
    <>
      <Section
        title="Dimensions"
        note={`Split by ${source.dimensions === "all" ? "" : "members of metadata: "}${dimensionsInWords(source.dimensions)}, into ${plural(series, "series", "series")}.`}
      >
        <WhenLoaded loaded={dimensions} what="dimensions">
          {(list) =>
            list.length === 0 ? (
              <p class="muted">None yet: they come with the points.</p>
            ) : (
              <TableFrame label="Dimensions">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col" class="number">
                      Values
                    </th>
                    <th scope="col">
                      <span class="visually-hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {list.map(({ name, values }) => (
                    <tr key={name}>
                      <th scope="row" class="mono name">
                        {name}
                      </th>
                      <td class="number">{formatCount(values)}</td>
                      <td class="row-actions">
                        <Button
                          small
                          pressed={named === name}
                          label={`Values of ${name}`}
                          disabled={values === 0}
                          onClick={() => setNamed(named === name ? null : name)}
                        >
                          Values
                        </Button>{" "}
                        {fields.length > 0 && values > 0 && (
                          <LinkButton small href={exploreHref(fields, undefined, { groups: [name] })}>
                            Chart<span class="visually-hidden"> with a line for each {name}</span>
                          </LinkButton>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </TableFrame>
            )
          }
        </WhenLoaded>
      </Section>
      {named !== null && (
        <Values key={named} path={path} name={named} onPick={(value) => setHaving([named, value])} />
      )}
      <SeriesTable
        key={having?.join(" ") ?? ""}
        path={path}
        having={having}
        count={series}
        onAll={() => setHaving(null)}
      />
    </>
  );
}

interface ValuesProps {
  path: SourcePath;
  name: string;
  onPick: (value: string) => void;
}

function Values({ path, name, onPick }: ValuesProps) {
  const [prefix, setPrefix] = useState("");
  const [offset, setOffset] = useState(0);
  const key = JSON.stringify(["values", path.sourceId, name, prefix, offset]);
  const page = useLoad(key, (signal) => listValues(path, name, prefix, PAGE_ROWS, offset, signal));
  return (
    <Section title={`Values of ${name}`}>
      <TextField
        label="That begin with"
        value={prefix}
        onInput={(text) => {
          setPrefix(text);
          setOffset(0);
        }}
        type="search"
      />
      <WhenLoaded loaded={page} what="values">
        {({ values, pagination }) =>
          values.length === 0 ? (
            <p class="muted">No value begins with “{prefix}”.</p>
          ) : (
            <>
              <TableFrame label={`Values of ${name}`}>
                <thead>
                  <tr>
                    <th scope="col">Value</th>
                    <th scope="col" class="number">
                      Series
                    </th>
                    <th scope="col">
                      <span class="visually-hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {values.map(({ value, series }) => (
                    <tr key={value}>
                      <th scope="row" class="mono name">
                        {shownValue(value)}
                      </th>
                      <td class="number">{formatCount(series)}</td>
                      <td class="row-actions">
                        <Button small label={`Series with ${shownValue(value)}`} onClick={() => onPick(value)}>
                          Series
                        </Button>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </TableFrame>
              <Pager
                offset={offset}
                limit={PAGE_ROWS}
                total={pagination.total}
                onMove={setOffset}
                back="Previous"
                forward="Next"
                label="Pages of values"
              />
            </>
          )
        }
      </WhenLoaded>
    </Section>
  );
}

interface SeriesProps {
  path: SourcePath;
  having: Having | null;
  count: number;
  onAll: () => void;
}

function SeriesTable({ path, having, count, onAll }: SeriesProps) {
  const [offset, setOffset] = useState(0);
  const key = JSON.stringify(["series", path.sourceId, having, count, offset]);
  const page = useLoad(key, (signal) => listSeries(path, having === null ? [] : [having], PAGE_ROWS, offset, signal));
  return (
    <Section
      title="Series"
      note={
        having === null
          ? "The points that have the same dimensions."
          : `With ${labelsInWords([having])} only.`
      }
      actions={
        having !== null && (
          <Button small onClick={onAll}>
            All series
          </Button>
        )
      }
    >
      <WhenLoaded loaded={page} what="series">
        {({ series, pagination }) =>
          series.length === 0 ? (
            <p class="muted">None yet: they come with the points.</p>
          ) : (
            <>
              <TableFrame label="Series" stacked>
                <thead>
                  <tr>
                    <th scope="col">Dimensions</th>
                    <th scope="col" class="number">
                      Points
                    </th>
                    <th scope="col">Oldest</th>
                    <th scope="col">Newest</th>
                  </tr>
                </thead>
                <tbody>
                  {series.map(({ dimensions, totalDataPoints, firstDataPoint, lastDataPoint }) => {
                    const labels = Object.entries(dimensions);
                    return (
                      <tr key={JSON.stringify(labels)}>
                        <th scope="row" class="mono name">
                          {labels.length === 0 ? <span class="muted">without dimensions</span> : labelsInWords(labels)}
                        </th>
                        <td class="number" data-label="Points">
                          {formatCompact(totalDataPoints)}
                        </td>
                        <td class="nowrap" data-label="Oldest">
                          <Ago at={firstDataPoint} />
                        </td>
                        <td class="nowrap" data-label="Newest">
                          <Ago at={lastDataPoint} />
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </TableFrame>
              <Pager
                offset={offset}
                limit={PAGE_ROWS}
                total={pagination.total}
                onMove={setOffset}
                back="Previous"
                forward="Next"
                label="Pages of series"
              />
            </>
          )
        }
      </WhenLoaded>
    </Section>
  );
}
