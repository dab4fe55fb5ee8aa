/** The sentences under and over the chart: what is drawn, what is not, and what is being waited for. */
import type { Mark } from "./triggers";
import { formatSpan, formatTime, plural, sentence } from "../app/format";
import type { Zone } from "../app/preferences";
import { Button } from "../parts/button";
import type { Catalog } from "./catalog";
import type { View } from "./fetch";
import { noteOf, remarksOf } from "./note";
import type { Line } from "./series";
import { FIELDS_MAX, type FieldRef } from "./state";
import type { LoadedView } from "./view";

interface NoteProps {
  loaded: LoadedView;
  view: View;
  lines: Line[];
  zone: Zone;
  /** The range does not move on with the time: from when to when it is must be said. */
  fixed: boolean;
}

export function Note({ loaded, view, lines, zone, fixed }: NoteProps) {
  const { drawn, how } = noteOf(view, lines);
  return (
    <p class="chart-note" role="status">
      <span data-testid="chart-points">{drawn}</span>
      {how}, over {formatSpan((view.span.to - view.span.from) / 1000)}
      {fixed && `: ${formatTime(view.span.from, zone)} to ${formatTime(view.span.to, zone)}`}
      <span class="muted"> · {Math.max(1, Math.round(view.tookMs))} ms</span>
      {loaded.following && <span class="live-dot"> · following</span>}
      {loaded.liveError !== null && (
        <span class="live-lost"> · not following: {sentence(loaded.liveError.message)} Trying again by itself.</span>
      )}
    </p>
  );
}

interface RemarksProps {
  view: View | null;
  fields: FieldRef[];
  catalog: Catalog;
  /** Fields of the address that are no longer there. */
  gone: number;
  /** Fields of the address that a view has no lines for. */
  beyond: number;
  marks: Mark[];
}

export function Remarks({ view, fields, catalog, gone, beyond, marks }: RemarksProps) {
  const remarks = view === null ? [] : remarksOf(view, fields, catalog.byId);
  if (gone > 0) remarks.push(`${plural(gone, "field")} of this view ${gone === 1 ? "is" : "are"} no longer there.`);
  if (beyond > 0) {
    const left = `${plural(beyond, "more field")} of its address ${beyond === 1 ? "is" : "are"} left out`;
    remarks.push(`A chart has ${FIELDS_MAX} lines at most: ${left}.`);
  }
  if (marks.length > 0) remarks.push(`${plural(marks.length, "trigger")} of alert rules marked.`);
  if (remarks.length === 0) return null;
  return (
    <ul class="remarks">
      {remarks.map((remark) => (
        <li key={remark}>{remark}</li>
      ))}
    </ul>
  );
}

export function NoPoints({ onAll, texts }: { onAll: () => void; texts: boolean }) {
  return texts ? (
    <div class="chart-empty">
      <p>Text fields are listed in the table below; a chart cannot draw them.</p>
    </div>
  ) : (
    <div class="chart-empty">
      <p>No points in this range.</p>
      <Button small onClick={onAll}>
        Show all there is
      </Button>
    </div>
  );
}

export function Waiting() {
  return (
    <div class="chart-waiting" role="status">
      <span class="spinner" aria-hidden="true" />
      Loading the points…
    </div>
  );
}
