/** Range, grouping, zoom and live: everything that changes the view but its lines. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { AGGREGATIONS, GROUPINGS, type Aggregation, type GroupBy } from "../api/query";
import { formatTime, zoneName } from "../app/format";
import type { Zone } from "../app/preferences";
import { Button } from "../parts/button";
import { SelectField, TextField } from "../parts/forms";
import { PRESETS, panned, parseTyped, zoomedIn, zoomedOut, type PresetId, type Span } from "./range";
import type { ExplorerState } from "./state";

interface ToolbarProps {
  state: ExplorerState;
  span: Span | null;
  zone: Zone;
  /** What can be taken out of the view. */
  outputs: ComponentChildren;
  onChange: (change: Partial<ExplorerState>) => void;
}

export function Toolbar({ state, span, zone, outputs, onChange }: ToolbarProps) {
  const [typing, setTyping] = useState(false);
  const presets: PresetId[] = [...PRESETS.map(({ id }) => id), "all"];
  const label = (id: PresetId) => PRESETS.find((preset) => preset.id === id)?.label ?? "All there is";
  return (
    <div class="toolbar" role="region" aria-label="Range and grouping">
      <div class="segments" role="group" aria-label="Range">
        {presets.map((id) => (
          <button
            type="button"
            key={id}
            aria-pressed={state.range.kind === "last" && state.range.preset === id}
            aria-label={id === "all" ? label(id) : `Last ${label(id)}`}
            onClick={() => onChange({ range: { kind: "last", preset: id }, live: state.live })}
          >
            {id}
          </button>
        ))}
        <button
          type="button"
          aria-pressed={state.range.kind === "absolute"}
          aria-expanded={typing}
          aria-label="From and to"
          onClick={() => setTyping(!typing)}
        >
          from–to
        </button>
      </div>
      <div class="toolbar-group">
        <Button
          small
          icon={state.live ? "pause" : "play"}
          look={state.live ? "primary" : "plain"}
          pressed={state.live}
          onClick={() =>
            onChange({
              live: !state.live,
              range: state.range.kind === "last" ? state.range : { kind: "last", preset: "15m" },
            })
          }
        >
          Live
        </Button>
      </div>
      <div class="toolbar-group">
        <Button
          small
          icon="back"
          label="Earlier"
          disabled={span === null}
          onClick={() => span && onChange({ range: panned(span, -1), live: false })}
        />
        <Button
          small
          icon="forward"
          label="Later"
          disabled={span === null}
          onClick={() => span && onChange({ range: panned(span, 1), live: false })}
        />
        <Button
          small
          icon="out"
          label="Zoom out"
          disabled={span === null}
          onClick={() => span && onChange({ range: zoomedOut(span), live: false })}
        />
        <Button
          small
          icon="into"
          label="Zoom in"
          disabled={span === null}
          onClick={() => span && onChange({ range: zoomedIn(span), live: false })}
        />
      </div>
      <div class="toolbar-row">
        <div class="toolbar-group">
          <SelectField
            label="Aggregation"
            labelHidden
            value={state.aggregation}
            onChange={(value) => onChange({ aggregation: value as Aggregation | "auto" })}
            options={[
              { value: "auto", label: "avg + band" },
              ...AGGREGATIONS.map((name) => ({ value: name, label: name })),
            ]}
          />
          <SelectField
            label="Grouping"
            labelHidden
            value={state.groupBy}
            onChange={(value) => onChange({ groupBy: value as GroupBy | "auto" | "raw" })}
            options={[
              { value: "auto", label: "auto" },
              ...GROUPINGS.map((name) => ({ value: name, label: `by ${name}` })),
              { value: "raw", label: "raw" },
            ]}
          />
        </div>
        <div class="toolbar-group">{outputs}</div>
      </div>
      {(typing || state.range.kind === "absolute") && (
        <TypedRange
          span={span}
          zone={zone}
          onApply={(range) => onChange({ range: { kind: "absolute", ...range }, live: false })}
        />
      )}
    </div>
  );
}

function TypedRange({ span, zone, onApply }: { span: Span | null; zone: Zone; onApply: (span: Span) => void }) {
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    setFrom(span === null ? "" : formatTime(span.from, zone));
    setTo(span === null ? "" : formatTime(span.to, zone));
    setFault(null);
  }, [span?.from, span?.to, zone]);
  const name = zoneName(zone, span?.from ?? Date.now());
  return (
    <form
      class="typed-range"
      aria-label="From and to"
      onSubmit={(event) => {
        event.preventDefault();
        const [start, end] = [parseTyped(from, zone), parseTyped(to, zone)];
        if (start === null || end === null) setFault("write a time as 2026-01-31 14:30 or as ISO 8601");
        else if (start >= end) setFault("the start must be before the end");
        else onApply({ from: start, to: end });
      }}
    >
      <TextField
        label={`From (${name})`}
        value={from}
        onInput={setFrom}
        mono
        placeholder="2026-01-31 14:30"
        fault={fault}
      />
      <TextField label={`To (${name})`} value={to} onInput={setTo} mono placeholder="2026-01-31 15:00" />
      <Button type="submit" small>
        Show
      </Button>
    </form>
  );
}
