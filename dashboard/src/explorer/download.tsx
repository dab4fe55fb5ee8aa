/** The view as CSV: what is shown, or every point of the range, page by page. */
import { useRef, useState } from "preact/hooks";
import { isAbort } from "../api/client";
import type { Source } from "../api/sources";
import { formatCount, plural } from "../app/format";
import { asError } from "../app/load";
import { notify } from "../app/notices";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox } from "../parts/forms";
import { csvHead, csvRows } from "./csv";
import { rawPages, type View } from "./fetch";
import { planOf } from "./plan";
import type { ExplorerState } from "./state";

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
  const close = () => {
    abort.current?.abort();
    onClose();
  };

  const shown = () => {
    const shape = { fields, band: view.rows.some((row) => row.stats !== undefined), metadata: view.groupBy === null };
    save([csvHead(shape), csvRows(view.rows, shape, sourceName)], view);
    notify(`${plural(view.rows.length, "row")} saved as CSV.`);
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
      const raw = planOf({ ...state, aggregation: "auto", groupBy: "raw" }, sources, view.span, 1000, Date.now());
      for (const bucket of raw.buckets) {
        for await (const page of rawPages(bucket, view.span, asking.signal)) {
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

  const expected = Math.round(view.plan.expectedPoints);
  return (
    <Dialog title="Download CSV" onClose={close}>
      <div class="choices">
        <div>
          <h3>What is shown</h3>
          <p class="hint">
            {plural(view.rows.length, "row")}
            {view.groupBy !== null && `, ${view.plan.aggregation} by ${view.groupBy}`}. No further calls.
          </p>
          <Button icon="download" onClick={shown} disabled={progress !== null}>
            Save what is shown
          </Button>
        </div>
        <div>
          <h3>Every point of the range</h3>
          <p class="hint">
            About {formatCount(expected)} points with their metadata, in{" "}
            {plural(Math.max(1, Math.ceil(expected / 10_000)), "call")}.
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

function save(parts: string[], view: View): void {
  const url = URL.createObjectURL(new Blob(parts, { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  const day = (at: number) => new Date(at).toISOString().slice(0, 19).replaceAll(":", "");
  link.href = url;
  link.download = `tidewatch-${day(view.span.from)}-${day(view.span.to)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
