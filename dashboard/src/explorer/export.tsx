/** The view as files: what is shown, or every point of the range, in the format of one's choice. */
import { useRef, useState } from "preact/hooks";
import { isAbort, type File } from "../api/client";
import { EXPORT_FORMATS, exportRows, type ExportFormat, type ExportQuery } from "../api/query";
import type { Source } from "../api/sources";
import { plural } from "../app/format";
import { asError } from "../app/load";
import { notify } from "../app/notices";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox, SelectField } from "../parts/forms";
import { pointQueries, shownQueries } from "./export-plan";
import type { View } from "./fetch";
import { isPartial, isSplit } from "./plan";
import type { ExplorerState } from "./state";
import { stepName } from "./steps";

export interface ExportProps {
  view: View;
  state: ExplorerState;
  sources: ReadonlyMap<string, Source>;
  onClose: () => void;
}

const FORMAT_NAMES: Record<ExportFormat, string> = {
  csv: "CSV, for spreadsheets",
  ndjson: "NDJSON, an object on each line",
  parquet: "Parquet",
  arrow: "Arrow stream",
};

export function Export({ view, state, sources, onClose }: ExportProps) {
  const [format, setFormat] = useState<ExportFormat>("csv");
  const [bytes, setBytes] = useState<number | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const abort = useRef<AbortController | null>(null);
  const steps = new Set(view.parts.flatMap((part) => part.groupBy ?? []));
  const stepsShown = [...steps].map((step) => stepName(step)).join(" or ");
  const points = pointsInRange(view);
  const close = () => {
    abort.current?.abort();
    onClose();
  };

  const save = async (queries: ExportQuery[]) => {
    const asking = new AbortController();
    abort.current = asking;
    setError(null);
    setBytes(0);
    try {
      let before = 0;
      for (const query of queries) {
        const file = await exportRows(query, format, asking.signal, (more) => setBytes(before + more));
        before += file.content.size;
        keep(file);
      }
      notify(`${plural(queries.length, "file")} saved, ${sizeOf(before)}.`);
      onClose();
    } catch (caught) {
      setBytes(null);
      if (!isAbort(caught)) setError(asError(caught));
    }
  };

  return (
    <Dialog title="Export" onClose={close}>
      <SelectField
        label="Format"
        value={format}
        onChange={(next) => setFormat(next as ExportFormat)}
        options={EXPORT_FORMATS.map((value) => ({ value, label: FORMAT_NAMES[value] }))}
      />
      <div class="choices">
        <div>
          <h3>What is shown</h3>
          <p class="hint">{steps.size > 0 ? `${view.plan.aggregation} by ${stepsShown}` : "Points as they came"}
            {isSplit(view.plan) && ` of each group by ${view.plan.dimensions.groups.join(", ")}`}.</p>
          <Button
            icon="download"
            disabled={bytes !== null}
            onClick={() => void save(shownQueries(view, sources))}
          >
            Save what is shown
          </Button>
        </div>
        <div>
          <h3>Every point of the range</h3>
          <p class="hint">
            {points === null ? "All points" : plural(points, "point")} with their metadata, from one moment.
          </p>
          {bytes === null ? (
            <Button icon="download" onClick={() => void save(pointQueries(view.plan, state.fields, view.span, sources))}>
              Save every point
            </Button>
          ) : (
            <div class="actions">
              <span role="status">{sizeOf(bytes)} so far</span>
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
  if (plan.buckets.some(({ shares }) => shares) || isPartial(plan)) return null;
  if (parts.some((part) => part.points === null || part.truncated)) return null;
  return parts.reduce((sum, part) => sum + (part.points ?? 0), 0);
}

function sizeOf(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function keep({ name, content }: File): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
