/** The explorer: lines of any fields over any range. Its whole state is the URL's. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatTime, plural } from "../app/format";
import { Lazy } from "../app/lazy";
import { useLoad } from "../app/load";
import { shownTheme, useZone } from "../app/preferences";
import { IfMay } from "../app/role";
import { go, replaceHash, useRoute } from "../app/route";
import { useStore } from "../app/store";
import { Plot } from "../chart/plot";
import { Button, LinkButton } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox } from "../parts/forms";
import { Empty, Page, WhenLoaded } from "../parts/page";
import { Time } from "../parts/show";
import type { AddToBoardProps } from "./add-to-board";
import { Annotations } from "./annotation-list";
import { fetchNotes, notesWithin } from "./annotations";
import { extentOf, fetchCatalog, firstFields, knownFields, type Catalog } from "./catalog";
import { CurlTexts } from "./curl";
import type { DimensionFormProps } from "./dimension-form";
import { UNSPLIT, type DimensionChoice } from "./dimensions";
import type { ExportProps } from "./export";
import { Legend, nearestIndex, shownValue } from "./legend";
import { Picker } from "./picker";
import { isSplit } from "./plan";
import { endsNow, notBehind, panned, spanOf, tidied, zoomedIn, zoomedOut, type Span } from "./range";
import type { RefineFormProps } from "./refine-form";
import { UNREFINED, withExpressions } from "./refinement";
import { NoPoints, Note, Remarks, Waiting } from "./remarks";
import { Rows } from "./rows";
import { linesOf, placesIn, pointsOf, type Line } from "./series";
import { fieldId, readFields, readState, writeState, type ExplorerState, type FieldRef } from "./state";
import { Toolbar } from "./toolbar";
import { useNames } from "./use-names";
import { fetchMarks, marksWithin } from "./triggers";
import { useView } from "./view";

export function ExplorerPage() {
  const catalog = useLoad("catalog", fetchCatalog, ["buckets", "sources"]);
  return (
    <Page title="Explorer" class="explorer-page">
      <WhenLoaded loaded={catalog} what="sources">
        {(data) =>
          data.byId.size === 0 ? (
            <Empty
              title="Nothing to explore yet"
              action={
                <LinkButton href="#/" look="primary">
                  Show me how to start
                </LinkButton>
              }
            >
              A chart needs a bucket, a source in it, and points.
            </Empty>
          ) : (
            <Explorer catalog={data} />
          )
        }
      </WhenLoaded>
    </Page>
  );
}

/** Few views need it, and each first visit would pay for it. */
const LazyRefineForm = (props: RefineFormProps) => (
  <Lazy name="refine form" what="form" load={async () => (await import("./refine-form")).RefineForm} props={props} />
);

const LazyDimensionForm = (props: DimensionFormProps) => (
  <Lazy
    name="dimension form"
    what="form"
    load={async () => (await import("./dimension-form")).DimensionForm}
    props={props}
  />
);

const LazyAddToBoard = (props: AddToBoardProps) => (
  <Lazy name="add to board" what="form" load={async () => (await import("./add-to-board")).AddToBoard} props={props} />
);

const LazyExport = (props: ExportProps) => (
  <Lazy name="export" what="form" load={async () => (await import("./export")).Export} props={props} />
);

function Explorer({ catalog: stored }: { catalog: Catalog }) {
  const { search } = useRoute();
  const zone = useZone();
  const theme = useStore(shownTheme);
  const state = useMemo(() => readState(search), [search]);
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [cursorAt, setCursorAt] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<"curl" | "export" | "board" | "refine" | "dimensions" | null>(null);
  const [picking, setPicking] = useState(false);

  const refinement = state.refinement ?? UNREFINED;
  const computed = JSON.stringify(refinement.expressions);
  const catalog = useMemo(() => withExpressions(stored, refinement.expressions), [stored, computed]);

  // A first visit sees a line, not a form.
  useEffect(() => {
    if (state.fields.length > 0 || search.has("r")) return;
    const fields = firstFields(catalog);
    if (fields.length > 0) replaceHash(writeState({ ...state, fields }));
  }, [search]);

  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const change = useCallback((part: Partial<ExplorerState>) => go(writeState({ ...state, ...part })), [state]);
  // Another range has the same fields: what is drawn of them is not drawn again before the answer is here.
  const picked = state.fields.map(fieldId).join(" ");
  const fields = useMemo(() => knownFields(catalog, state.fields), [catalog, picked]);
  const beyond = useMemo(() => readFields(search).length, [search]) - state.fields.length;
  const gone = state.fields.length - fields.length;
  const split = state.dimensions ?? UNSPLIT;
  const names = useNames(catalog, fields, state.dimensions !== undefined);
  const loaded = useView(state, catalog, width, zone, names);
  const { view } = loaded;

  const marksKey = fields.length === 0 ? null : fields.map((ref) => ref.sourceId).join();
  const marks = useLoad(marksKey, (signal) => fetchMarks(fields, signal), ["rules"]);

  const notesKey = marksKey === null ? null : `notes ${marksKey}`;
  const notes = useLoad(notesKey, (signal) => fetchNotes(fields, signal), ["annotations"]);

  const places = useRef<ReadonlyMap<string, number>>(new Map());
  const lines = useMemo(() => {
    const made = view === null ? [] : linesOf(view, fields, catalog.byId, places.current);
    places.current = placesIn(made);
    return made;
  }, [view, fields, catalog]);
  const span =
    view?.span ?? (fields.length > 0 ? spanOf(state.range, Date.now(), extentOf(catalog, fields), zone) : null);
  const shownMarks = useMemo(
    () => (span === null || marks.data === null ? [] : marksWithin(marks.data.marks, span)),
    [marks.data, span?.from, span?.to],
  );
  const shownNotes = useMemo(
    () => (span === null || notes.data === null ? [] : notesWithin(notes.data, span)),
    [notes.data, span?.from, span?.to],
  );
  const points = lines.reduce((sum, line) => sum + pointsOf(line), 0);
  const zoom = (next: Span) => {
    const seen = notBehind(next, Math.max(Date.now(), span?.to ?? 0));
    change({ range: { kind: "absolute", ...tidied(seen) }, live: false });
  };
  const onKey = (key: string): boolean => {
    if (span === null) return false;
    // Keys come faster than answers: the next one goes on from what is asked for.
    const asked = state.range.kind === "absolute" ? state.range : span;
    if (key === "+" || key === "=") change({ range: zoomedIn(asked, cursorAt), live: false });
    else if (key === "-") change({ range: zoomedOut(asked, Date.now()), live: false });
    else if (key === "[" || key === "]") change({ range: panned(asked, key === "[" ? -1 : 1), live: false });
    else return false;
    return true;
  };
  const toggle = (id: string) => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    setHidden(next);
  };
  const pickedSources = [...new Set(fields.map(({ sourceId }) => sourceId))].flatMap((id) => stored.byId.get(id) ?? []);
  const divisible = state.dimensions !== undefined || pickedSources.some(({ dimensions }) => dimensions !== null);
  const height = width < 620 ? 280 : Math.max(320, Math.min(440, Math.round(width * 0.4)));

  return (
    <div class="explorer">
      <aside class={picking ? "explorer-side open" : "explorer-side"} aria-label="Sources and fields">
        <button type="button" class="side-toggle" aria-expanded={picking} onClick={() => setPicking(!picking)}>
          {fields.length === 0 ? "Pick sources and fields" : `${plural(fields.length, "field")} picked`}
        </button>
        <div class="side-body">
          <Picker
            catalog={catalog}
            fields={state.fields}
            theme={theme}
            split={split.groups.length > 0}
            onChange={(next) => change({ fields: next })}
          />
        </div>
      </aside>
      <div class="explorer-main">
        <Toolbar
          state={state}
          span={span}
          zone={zone}
          onChange={change}
          onRefine={() => setDialog("refine")}
          onDimensions={divisible ? () => setDialog("dimensions") : null}
          outputs={
            <>
              <IfMay>
                <Button small icon="boards" disabled={fields.length === 0} onClick={() => setDialog("board")}>
                  Add to board
                </Button>
              </IfMay>
              <Button small disabled={view === null} onClick={() => setDialog("curl")}>
                As curl
              </Button>
              <Button small icon="download" disabled={view === null} onClick={() => setDialog("export")}>
                Export
              </Button>
              <Button
                small
                icon="refresh"
                disabled={view === null}
                onClick={() => (loaded.reload(), marks.reload(), notes.reload())}
              >
                Reload
              </Button>
            </>
          }
        />
        <div class="chart-card" ref={frame}>
          {loaded.error !== null && (
            <div class="actions">
              <ErrorBox error={loaded.error} />
              <Button small icon="refresh" onClick={loaded.reload}>
                Try again
              </Button>
            </div>
          )}
          <div
            class={loaded.slow ? "chart-frame waiting" : "chart-frame"}
            aria-busy={fields.length > 0 && loaded.loading}
            style={{ minHeight: `${height}px` }}
          >
            {fields.length === 0 ? (
              <Empty title="Pick a field">The chart shows the field and marks when its alert rules fired.</Empty>
            ) : span !== null && lines.length > 0 ? (
              <Plot
                lines={lines}
                hidden={hidden}
                span={span}
                marks={shownMarks}
                notes={shownNotes}
                zone={zone}
                theme={theme}
                height={height}
                label={`Chart of ${namesOf(lines)}, ${plural(points, "point")} from ${formatTime(span.from, zone)} to ${formatTime(span.to, zone)}`}
                onCursor={setCursorAt}
                onZoom={zoom}
                onKey={onKey}
              />
            ) : null}
            {loaded.slow && <Waiting />}
            {view !== null && fields.length > 0 && points === 0 && (
              <NoPoints
                onAll={() => change({ range: { kind: "last", preset: "all" }, live: false })}
                texts={lines.length === 0 && view.plan.unmatched.length === 0 && !isSplit(view.plan)}
              />
            )}
          </div>
          {view !== null && (
            <Note loaded={loaded} view={view} lines={lines} zone={zone} fixed={!endsNow(state.range)} />
          )}
          <Remarks view={view} fields={fields} catalog={catalog} gone={gone} beyond={beyond} marks={shownMarks} />
          {lines.length > 0 && (
            <Legend lines={lines} hidden={hidden} onToggle={toggle} cursorAt={cursorAt} zone={zone} theme={theme} />
          )}
          <p id="plot-keys" class="hint keys">
            Drag to zoom, double-click to zoom out; on the keyboard <kbd>←</kbd> <kbd>→</kbd> move the cursor,{" "}
            <kbd>+</kbd> <kbd>−</kbd> zoom about it, <kbd>[</kbd> <kbd>]</kbd> move the range earlier and later. The
            browser's Back goes one view back.
          </p>
          <p class="hint touch-keys">Drag to move, pinch to zoom, tap to read a value.</p>
          <p class="visually-hidden" aria-live="polite">
            {cursorAt === null
              ? ""
              : lines
                  .filter((line) => !hidden.has(line.id))
                  .map((line) => spoken(line, cursorAt))
                  .join("; ")}
          </p>
        </div>
        {shownMarks.length > 0 && (
          <section class="section" aria-label="Triggers in this range">
            <h2>Triggers in this range</h2>
            <ul class="mark-list">
              {shownMarks
                .slice(-12)
                .reverse()
                .map((mark) => (
                  <li key={`${mark.rule._id} ${mark.at}`}>
                    <span class="flag" aria-hidden="true" />
                    <a class="name" href={`#/rules/${mark.rule._id}`}>
                      {mark.rule.name}
                    </a>
                    <Time at={new Date(mark.at).toISOString()} />
                  </li>
                ))}
            </ul>
            {shownMarks.length > 12 && <p class="hint">The newest 12 of {shownMarks.length}; the chart shows all.</p>}
          </section>
        )}
        {span !== null && fields.length > 0 && (
          <Annotations
            notes={shownNotes}
            fields={fields}
            catalog={catalog}
            at={cursorAt ?? span.to}
            zone={zone}
            onChanged={notes.reload}
          />
        )}
        {view !== null && fields.length > 0 && (
          <section class="section" aria-label="Latest points">
            <h2>Latest points</h2>
            <Rows rows={view.latest} fields={fields} sources={catalog.byId} zone={zone} />
          </section>
        )}
      </div>
      {dialog === "curl" && view !== null && (
        <Dialog title="The same query as curl" onClose={() => setDialog(null)} wide>
          <CurlTexts view={view} />
        </Dialog>
      )}
      {dialog === "refine" && (
        <LazyRefineForm
          refinement={refinement}
          fields={fields}
          catalog={stored}
          onClose={() => setDialog(null)}
          onDone={(next, refined) => {
            setDialog(null);
            change({ refinement: next, fields: refined });
          }}
        />
      )}
      {dialog === "dimensions" && (
        <LazyDimensionForm
          choice={split}
          sources={pickedSources}
          onClose={() => setDialog(null)}
          onDone={(next) => {
            setDialog(null);
            change({ dimensions: next });
          }}
        />
      )}
      {dialog === "board" && (
        <LazyAddToBoard
          state={{ ...state, fields }}
          title={titleOf(lines, split, fields, catalog)}
          plan={view?.plan ?? null}
          unit={new Set(lines.map((line) => line.unit)).size === 1 ? (lines[0]?.unit ?? null) : null}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === "export" && view !== null && (
        <LazyExport view={view} state={{ ...state, fields }} sources={catalog.byId} onClose={() => setDialog(null)} />
      )}
    </div>
  );
}

/** More names than this are not listened to. */
const NAMES_MAX = 12;

const namesOf = (lines: Line[]): string =>
  lines.length <= NAMES_MAX
    ? lines.map((line) => line.label).join(", ")
    : `${lines
        .slice(0, NAMES_MAX)
        .map((line) => line.label)
        .join(", ")} and ${lines.length - NAMES_MAX} more`;

/** Of groups, what they are groups of. */
function titleOf(lines: Line[], { groups }: DimensionChoice, fields: FieldRef[], { byId }: Catalog): string {
  if (groups.length === 0) return lines.map((line) => line.label).join(", ");
  const names = fields.map(({ sourceId, field }) => `${byId.get(sourceId)?.name ?? ""} · ${field}`);
  return `${names.join(", ")} by ${groups.join(", ")}`;
}

function spoken(line: Line, at: number): string {
  const index = nearestIndex(line, at);
  const value = index === null ? null : (line.values[index] ?? null);
  return `${line.label} ${value === null ? "no value" : `${shownValue(line, value)} ${line.unit}`}`;
}
