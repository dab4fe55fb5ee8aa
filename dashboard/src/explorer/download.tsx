/** The view as CSV: what is shown, or every point of the range, page by page. */
import { useRef, useState } from "preact/hooks";
import { isAbort } from "../api/client";
import type { Source } from "../api/sources";
import { plural } from "../app/format";
import { asError } from "../app/load";
import { notify } from "../app/notices";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox } from "../parts/forms";
import { csvHead, csvRows } from "./csv";
import { rawPages, type View } from "./fetch";
import { hasBand, pointPlans } from "./plan";
import { canMatch, isFiltered } from "./refinement";
import { rowsOf } from "./table";
import type { ExplorerState } from "./state";
import { stepName } from "./steps";

interface DownloadProps {
  view: View;
  state: ExplorerState;
  sources: ReadonlyMap<string, Source>;
  onClose: () => void;
}

export function Download({ view, state, sources, onClose }: DownloadProps) {
  const [progress, setProgress] = useState<number | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const abort = useRef<AbortController | null>(null);
  const fields = [...new Set(state.fields.map((ref) => ref.field))];
  const sourceName = (id: string) => sources.get(id)?.name ?? "";
  const tables = view.parts.flatMap((part) => [...part.tables.values()]);
  const rowsShown = tables.reduce((sum, table) => sum + table.times.length, 0);
  const steps = new Set(view.parts.flatMap((part) => part.groupBy ?? []));
  const grouped = steps.size > 0;
  const stepsShown = [...steps].map((step) => stepName(step)).join(" or ");
  const points = pointsInRange(view);
  const close = () => {
    abort.current?.abort();
    onClose();
  };

  const shown = () => {
    const shape = { fields, band: hasBand(view.plan) && grouped, metadata: !grouped };
    const rows = rowsOf(view.parts.map((part) => part.tables));
    save([csvHead(shape), csvRows(rows, shape, sourceName)], view);
    notify(`${plural(rows.length, "row")} saved as CSV.`);
    onClose();
  };

  const whole = async () => {
    const asking = new AbortController();
    abort.current = asking;
    setError(null);
    setProgress(0);
    const shape = { fields, band: false, metadata: true };
    const parts = [csvHead(shape)];
    let rows = 0;
    try {
      const matched = state.fields.filter((ref) => {
        const source = sources.get(ref.sourceId);
        return source === undefined || canMatch(view.plan.refinement, source);
      });
      for (const bucket of pointPlans(matched)) {
        for await (const page of rawPages(view.plan.refinement, bucket, view.span, asking.signal)) {
          parts.push(csvRows(page, shape, sourceName));
          rows += page.length;
          setProgress(rows);
        }
      }
      save(parts, view);
      notify(`${plural(rows, "point")} saved as CSV.`);
      onClose();
    } catch (caught) {
      setProgress(null);
      if (!isAbort(caught)) setError(asError(caught));
    }
  };

  return (
    <Dialog title="Download CSV" onClose={close}>
      <div class="choices">
        <div>
          <h3>What is shown</h3>
          <p class="hint">
            {plural(rowsShown, "row")}
            {grouped && `, ${view.plan.aggregation} by ${stepsShown}`}.
          </p>
          <Button icon="download" onClick={shown} disabled={progress !== null}>
            Save what is shown
          </Button>
        </div>
        <div>
          <h3>Every point of the range</h3>
          <p class="hint">
            {points === null ? "All points" : plural(points, "point")} with their metadata, 10,000 in each call.
          </p>
          {progress === null ? (
            <Button icon="download" onClick={() => void whole()}>
              Save every point
            </Button>
          ) : (
            <div class="actions">
              <span role="status">{plural(progress, "point")} so far</span>
              <Button small onClick={() => abort.current?.abort()}>
                Stop
              </Button>
            </div>
          )}
        </div>
      </div>
      <ErrorBox error={error} />
    </Dialog>
  );
}

/** As far as the server has counted them. */
function pointsInRange({ plan, parts }: View): number | null {
  // A point that has a boolean and a number is in the parts of both.
  if (plan.buckets.some(({ shares }) => shares) || isFiltered(plan.refinement)) return null;
  if (parts.some((part) => part.points === null || part.truncated)) return null;
  return parts.reduce((sum, part) => sum + (part.points ?? 0), 0);
}

function save(parts: string[], view: View): void {
  const url = URL.createObjectURL(new Blob(parts, { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  const day = (at: number) => new Date(at).toISOString().slice(0, 19).replaceAll(":", "");
  link.href = url;
  link.download = `tidewatch-${day(view.span.from)}-${day(view.span.to)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
