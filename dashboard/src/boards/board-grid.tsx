/**
 * The panels of a board on its grid; while it is edited, they are moved and resized by pointer and by keyboard, and where
 * they stand one below the other, by buttons.
 */
import { useRef, useState } from "preact/hooks";
import type { Panel } from "../api/boards";
import { Button } from "../parts/button";
import { COLUMNS, inOrder, moved, readingOrder, resized, spokenPlace, widened, withPlace } from "./grid";
import { PanelBody, type PanelProps } from "./panel";

export interface Editing {
  onChange: (panels: Panel[]) => void;
  onEdit: (index: number) => void;
}

type GridProps = Omit<PanelProps, "index"> & { editing: Editing | null };

/** As the style sheet says it: a row and the space below it. */
const ROW_PX = 48;

const nameOf = (panel: Panel): string => (panel.title === "" ? `the panel of ${panel.kind}` : panel.title);

export function BoardGrid({ editing, ...shared }: GridProps) {
  const grid = useRef<HTMLDivElement>(null);
  const [said, setSaid] = useState("");
  const { panels } = shared.board;
  const put = (index: number, changed: Panel[]) => {
    if (JSON.stringify(panels) === JSON.stringify(changed)) return;
    editing?.onChange(changed);
    setSaid(`${nameOf(changed[index]!)}: ${spokenPlace(changed[index]!)}`);
  };
  /** Follows the pointer from here on, a column or a row at a time. */
  const follow = (event: PointerEvent, index: number, place: typeof moved<Panel>) => {
    const handle = event.currentTarget as HTMLElement;
    const column = (grid.current?.clientWidth ?? COLUMNS) / COLUMNS;
    // From where all panels were: what was covered on the way goes back to its place.
    const [before, x, y] = [panels, event.clientX, event.clientY];
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    const move = (to: PointerEvent) => {
      const [columns, rows] = [Math.round((to.clientX - x) / column), Math.round((to.clientY - y) / ROW_PX)];
      latest.current(index, withPlace(before, index, place(before[index]!, columns, rows)));
    };
    const end = () => {
      handle.removeEventListener("pointermove", move);
      handle.removeEventListener("pointerup", end);
      handle.removeEventListener("pointercancel", end);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", end);
    handle.addEventListener("pointercancel", end);
  };
  const latest = useRef(put);
  latest.current = put;
  const step = (event: KeyboardEvent, index: number, place: typeof moved<Panel>) => {
    const by = STEPS[event.key];
    if (by === undefined) return;
    event.preventDefault();
    put(index, withPlace(panels, index, place(panels[index]!, ...by)));
  };
  const order = readingOrder(panels);
  return (
    <>
      <div class={editing === null ? "board-grid" : "board-grid editing"} ref={grid}>
        {order.map((index, rank) => {
          const panel = panels[index]!;
          const name = nameOf(panel);
          return (
            // The place in the list is what a panel is known by: it has no id.
            <section
              key={index}
              class="panel"
              aria-label={name}
              style={{
                "--x": panel.x + 1,
                "--y": panel.y + 1,
                "--w": panel.w,
                "--h": panel.h,
              }}
            >
              <header class="panel-head">
                <h2>{panel.title}</h2>
                {editing !== null && (
                  <div class="panel-tools">
                    <button
                      type="button"
                      class="handle"
                      aria-label={`Move ${name}: arrow keys`}
                      title="Move: drag, or arrow keys"
                      onPointerDown={(event) => follow(event, index, moved)}
                      onKeyDown={(event) => step(event, index, moved)}
                    >
                      ✥
                    </button>
                    <Button small icon="edit" label={`Edit ${name}`} onClick={() => editing.onEdit(index)} />
                    <Button
                      small
                      icon="trash"
                      label={`Remove ${name}`}
                      onClick={() => {
                        editing.onChange(panels.filter((_, at) => at !== index));
                        setSaid(`${name} removed`);
                      }}
                    />
                  </div>
                )}
              </header>
              {editing !== null && (
                <div class="stack-tools">
                  <Button
                    small
                    label={`Move ${name} up`}
                    disabled={rank === 0}
                    onClick={() => put(index, inOrder(panels, index, -1))}
                    icon="up"
                  />
                  <Button
                    small
                    label={`Move ${name} down`}
                    disabled={rank === order.length - 1}
                    onClick={() => put(index, inOrder(panels, index, 1))}
                    icon="down"
                  />
                  <Button
                    small
                    disabled={panel.h <= 1}
                    onClick={() => put(index, withPlace(panels, index, resized(panel, 0, -1)))}
                  >
                    Shorter
                  </Button>
                  <Button small onClick={() => put(index, withPlace(panels, index, resized(panel, 0, 1)))}>
                    Taller
                  </Button>
                  <Button small onClick={() => put(index, withPlace(panels, index, widened(panel)))}>
                    {panel.w === COLUMNS ? "Half width" : "Full width"}
                  </Button>
                  <span class="hint">
                    {panel.w} of {COLUMNS} columns, {panel.h} rows
                  </span>
                </div>
              )}
              <PanelBody {...shared} index={index} />
              {editing !== null && (
                <button
                  type="button"
                  class="handle resize"
                  aria-label={`Resize ${name}: arrow keys`}
                  title="Resize: drag, or arrow keys"
                  onPointerDown={(event) => follow(event, index, resized)}
                  onKeyDown={(event) => step(event, index, resized)}
                >
                  ⤡
                </button>
              )}
            </section>
          );
        })}
      </div>
      <p class="visually-hidden" aria-live="polite">
        {said}
      </p>
      <p id="plot-keys" class="visually-hidden">
        On a chart, the arrow keys move the cursor; a drag shows the whole board in another range.
      </p>
    </>
  );
}

const STEPS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
