/** A panel's title, kind, query and looks. A query that the form cannot say is written as JSON. */
import { useEffect, useRef, useState } from "preact/hooks";
import { LEVELS, PANEL_KINDS, type BoardContent, type Level, type Panel, type PanelKind, type PanelQuery } from "../api/boards";
import { numberOf } from "../app/format";
import type { Catalog } from "../explorer/catalog";
import { isValidChoice } from "../explorer/dimension-fields";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { NumberField, SelectField, TextAreaField, TextField, focusFault } from "../parts/forms";
import { QueryFields } from "./query-fields";
import { formOf, queryOfForm, type QueryForm } from "./query-form";

interface PanelFormProps {
  /** Null for a new one. */
  panel: Panel | null;
  board: BoardContent;
  catalog: Catalog;
  onDone: (panel: Panel) => void;
  onClose: () => void;
}

const KINDS: Record<PanelKind, string> = {
  lines: "Lines over time",
  bars: "Bars over time",
  stat: "One value",
  table: "Table",
  states: "States over time",
  rules: "Alert rules of a bucket",
};

interface ThresholdText {
  value: string;
  level: Level;
}

export function PanelForm({ panel, board, catalog, onDone, onClose }: PanelFormProps) {
  const first = catalog.buckets[0]?.bucket._id ?? "";
  const start: PanelQuery = panel?.query ?? { bucketId: first, maxPoints: 1000, layout: "columns" };
  const [title, setTitle] = useState(panel?.title ?? "");
  const [kind, setKind] = useState<PanelKind>(panel?.kind ?? "lines");
  const [form, setForm] = useState<QueryForm | null>(formOf(start));
  const [json, setJson] = useState(JSON.stringify(start, null, 2));
  const [unit, setUnit] = useState(panel?.unit ?? "");
  const [decimals, setDecimals] = useState(panel?.decimals?.toString() ?? "");
  const [thresholds, setThresholds] = useState<ThresholdText[]>(
    (panel?.thresholds ?? []).map(({ value, level }) => ({ value: String(value), level })),
  );
  const body = useRef<HTMLFormElement>(null);
  /** How often dimensions were found wrong; their faults are shown from the first time on. */
  const [rounds, setRounds] = useState(0);
  useEffect(() => focusFault(body.current), [rounds]);
  const [fault, setFault] = useState<string | null>(null);
  const digits = decimals.trim() === "" ? null : Number(decimals);
  const digitsFault =
    digits === null || (Number.isInteger(digits) && digits >= 0 && digits <= 10)
      ? null
      : "must be an integer from 0 to 10, or empty";
  const submit = (element: HTMLFormElement) => {
    const query = form === null ? parsed(json) : queryOfForm(form, kind);
    if (query === null) return setFault("must be a JSON object");
    if (form !== null && kind !== "rules" && !isValidChoice(form, true)) return setRounds(rounds + 1);
    if (digitsFault !== null || thresholds.some(({ value }) => numberOf(value) === null)) return focusFault(element);
    const limits = thresholds.map(({ value, level }) => ({ value: numberOf(value)!, level }));
    onDone({
      title,
      kind,
      query,
      unit: unit === "" ? null : unit,
      decimals: digits,
      thresholds: limits.length === 0 ? null : limits,
      ...{ x: 0, y: 0, w: 6, h: 6 },
    });
  };
  return (
    <Dialog title={panel === null ? "Add a panel" : "Edit the panel"} onClose={onClose} wide>
      <form
        ref={body}
        onSubmit={(event) => {
          event.preventDefault();
          submit(event.currentTarget);
        }}
      >
        <TextField label="Title" value={title} onInput={setTitle} maxLength={100} />
        <SelectField
          label="Shows"
          value={kind}
          onChange={(value) => setKind(value as PanelKind)}
          options={PANEL_KINDS.map((value) => ({ value, label: KINDS[value] }))}
        />
        {form === null ? (
          <TextAreaField
            label="Query"
            hint="A body of POST /api/data/query; “$name” stands for a variable of the board."
            value={json}
            onInput={(text) => {
              setJson(text);
              setFault(null);
            }}
            rows={12}
            maxLength={100_000}
            fault={fault}
          />
        ) : (
          <QueryFields form={form} kind={kind} board={board} catalog={catalog} tried={rounds > 0} onChange={setForm} />
        )}
        <Button
          small
          look="quiet"
          onClick={() => {
            if (form !== null) {
              setJson(JSON.stringify(queryOfForm(form, kind), null, 2));
              setForm(null);
              return;
            }
            const query = parsed(json);
            const said = query === null ? null : formOf(query);
            if (said === null) setFault("says more than the fields can");
            setForm(said);
          }}
        >
          {form === null ? "Use the fields" : "Write the query as JSON"}
        </Button>
        {kind !== "rules" && (
          <>
            <div class="field-row">
              <TextField label="Unit" value={unit} onInput={setUnit} maxLength={32} />
              <NumberField label="Decimals" value={decimals} onInput={setDecimals} hint="0 to 10; as needed when empty" fault={digitsFault} />
            </div>
            <fieldset class="choice-list">
              <legend>Thresholds</legend>
              {thresholds.map((threshold, index) => {
                const change = (part: Partial<ThresholdText>) =>
                  setThresholds(thresholds.map((one, at) => (at === index ? { ...one, ...part } : one)));
                return (
                  <div class="field-row" key={index}>
                    <NumberField label="From" value={threshold.value} onInput={(value) => change({ value })} required />
                    <SelectField
                      label="Level"
                      value={threshold.level}
                      options={LEVELS}
                      onChange={(level) => change({ level: level as Level })}
                    />
                    <Button
                      small
                      icon="trash"
                      label={`Remove the threshold ${threshold.value}`}
                      onClick={() => setThresholds(thresholds.filter((_, at) => at !== index))}
                    />
                  </div>
                );
              })}
              {thresholds.length < 10 && (
                <Button small icon="plus" onClick={() => setThresholds([...thresholds, { value: "", level: "warning" }])}>
                  Add a threshold
                </Button>
              )}
            </fieldset>
          </>
        )}
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            {panel === null ? "Add" : "Done"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function parsed(text: string): PanelQuery | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as PanelQuery) : null;
  } catch {
    return null;
  }
}
