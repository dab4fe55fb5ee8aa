/** Range, grouping, zoom and live: everything that changes the view but its lines. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { AGGREGATIONS, GROUPINGS, OFFSETS, type Aggregation, type GroupBy, type Offset } from "../api/query";
import { formatTime, zoneName } from "../app/format";
import type { Zone } from "../app/preferences";
import { Button } from "../parts/button";
import { SelectField, TextField } from "../parts/forms";
import { isRelative, momentOf, type Edge } from "../app/moment";
import {
  PRESETS,
  endsNow,
  panned,
  typedRange,
  zoomedIn,
  zoomedOut,
  type PresetId,
  type Range,
  type Span,
} from "./range";
import { UNSPLIT, countOfChoice } from "./dimensions";
import { UNREFINED, countOf } from "./refinement";
import type { ExplorerState } from "./state";
import { stepName } from "./steps";

interface ToolbarProps {
  state: ExplorerState;
  span: Span | null;
  zone: Zone;
  /** What can be taken out of the view. */
  outputs: ComponentChildren;
  onChange: (change: Partial<ExplorerState>) => void;
  onRefine: () => void;
  /** Null where no source has dimensions. */
  onDimensions: (() => void) | null;
}

export function Toolbar({ state, span, zone, outputs, onChange, onRefine, onDimensions }: ToolbarProps) {
  const [typing, setTyping] = useState(false);
  const refined = countOf(state.refinement ?? UNREFINED);
  const split = countOfChoice(state.dimensions ?? UNSPLIT);
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
            aria-label={id === "all" ? "all there is" : `${id}: the last ${label(id)}`}
            onClick={() => onChange({ range: { kind: "last", preset: id }, live: state.live })}
          >
            {id}
          </button>
        ))}
        <button
          type="button"
          aria-pressed={state.range.kind !== "last"}
          aria-expanded={typing}
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
              range: endsNow(state.range) ? state.range : { kind: "last", preset: "15m" },
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
          onClick={() => span && onChange({ range: zoomedOut(span, Date.now()), live: false })}
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
              { value: "auto", label: (state.dimensions?.groups ?? []).length > 0 ? "avg" : "avg + band" },
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
              ...GROUPINGS.map((name) => ({ value: name, label: `by ${stepName(name)}` })),
              { value: "raw", label: "raw" },
            ]}
          />
          <SelectField
            label="Comparison"
            labelHidden
            value={state.compare ?? ""}
            onChange={(value) => onChange({ compare: value === "" ? null : (value as Offset) })}
            options={[
              { value: "", label: "no comparison" },
              ...OFFSETS.map((offset) => ({ value: offset, label: OFFSET_NAMES[offset] })),
            ]}
          />
          <Button small pressed={refined > 0} disabled={state.fields.length === 0} onClick={onRefine}>
            {refined === 0 ? "Filter and compute" : `Filter and compute (${refined})`}
          </Button>
          {onDimensions !== null && (
            <Button small pressed={split > 0} disabled={state.fields.length === 0} onClick={onDimensions}>
              {split === 0 ? "Dimensions" : `Dimensions (${split})`}
            </Button>
          )}
        </div>
        <div class="toolbar-group">{outputs}</div>
      </div>
      {typing && (
        <TypedRange
          range={state.range}
          span={span}
          zone={zone}
          onApply={(range) => onChange({ range, live: state.live && endsNow(range) })}
        />
      )}
    </div>
  );
}

const OFFSET_NAMES: Record<Offset, string> = {
  "1d": "and the day before",
  "7d": "and the week before",
  "28d": "and 4 weeks before",
  "364d": "and the year before",
};

interface TypedRangeProps {
  range: Range;
  span: Span | null;
  zone: Zone;
  onApply: (range: Range) => void;
}

/** What stands in the boxes of a range that is being typed, and which range they were opened over. */
interface Typed {
  over: string;
  from: string;
  to: string;
  fault: string | null;
}

function TypedRange({ range, span, zone, onApply }: TypedRangeProps) {
  const [typed, setTyped] = useState<Typed | null>(null);
  const shown = JSON.stringify([range, zone, span === null]);
  // What is typed lasts until another range is shown. No effect fills the boxes: it could overwrite the next text.
  const ours = typed?.over === shown ? typed : null;
  const [from, to] = ours === null ? boxTexts(range, span, zone) : [ours.from, ours.to];
  const fault = ours?.fault ?? null;
  const type = (part: Partial<Typed>) => setTyped({ over: shown, from, to, fault, ...part });
  // A range may begin in summer time and end in winter time.
  const nameAt = (text: string, edge: Edge) => {
    const now = Date.now();
    return zoneName(zone, momentOf(text.trim(), zone, now, edge) ?? span?.[edge] ?? now);
  };
  return (
    <form
      class="typed-range"
      aria-label="From and to"
      onSubmit={(event) => {
        event.preventDefault();
        const meant = typedRange(from, to, zone, Date.now());
        if (typeof meant === "string") return type({ fault: meant });
        setTyped(null);
        onApply(meant);
      }}
    >
      <TextField
        label={`From (${nameAt(from, "from")})`}
        value={from}
        onInput={(text) => type({ from: text })}
        mono
        placeholder="now-6h"
        fault={fault}
      />
      <TextField
        label={`To (${nameAt(to, "to")})`}
        value={to}
        onInput={(text) => type({ to: text })}
        mono
        placeholder="now"
      />
      <Button type="submit" small>
        Show
      </Button>
      <p class="hint">A time, a day, now-6h, today or yesterday. A day means the whole day.</p>
    </form>
  );
}

/** A range that moves on is shown as it would be typed, a fixed one in the reader's zone. */
function boxTexts(range: Range, span: Span | null, zone: Zone): [string, string] {
  const boxText = (text: string) => (isRelative(text) ? text : formatTime(Date.parse(text), zone));
  if (range.kind === "typed") return [boxText(range.from), boxText(range.to)];
  if (range.kind === "last" && range.preset !== "all") return [`now-${range.preset}`, "now"];
  const fixed = range.kind === "absolute" ? range : span;
  return fixed === null ? ["", ""] : [formatTime(fixed.from, zone), formatTime(fixed.to, zone)];
}
