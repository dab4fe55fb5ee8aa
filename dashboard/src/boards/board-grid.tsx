/** The panels of a board on its grid; while it is edited, they are moved and resized by pointer and by keyboard. */
import { useRef, useState } from "preact/hooks";
import type { Panel } from "../api/boards";
import { Button } from "../parts/button";
import { COLUMNS, moved, readingOrder, resized, spokenPlace } from "./grid";
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
  const change = (index: number, panel: Panel) => {
    if (JSON.stringify(panels[index]) === JSON.stringify(panel)) return;
    editing?.onChange(panels.map((one, at) => (at === index ? panel : one)));
    setSaid(`${nameOf(panel)}: ${spokenPlace(panel)}`);
  };
  /** Follows the pointer from here on, a column or a row at a time. */
  const follow = (event: PointerEvent, index: number, place: typeof moved<Panel>) => {
    const handle = event.currentTarget as HTMLElement;
    const column = (grid.current?.clientWidth ?? COLUMNS) / COLUMNS;
    const [panel, x, y] = [panels[index]!, event.clientX, event.clientY];
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    const move = (to: PointerEvent) =>
      latest.current(index, place(panel, Math.round((to.clientX - x) / column), Math.round((to.clientY - y) / ROW_PX)));
    const end = () => {
      handle.removeEventListener("pointermove", move);
      handle.removeEventListener("pointerup", end);
      handle.removeEventListener("pointercancel", end);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", end);
    handle.addEventListener("pointercancel", end);
  };
  const latest = useRef(change);
  latest.current = change;
  const step = (event: KeyboardEvent, index: number, place: typeof moved<Panel>) => {
    const by = STEPS[event.key];
    if (by === undefined) return;
    event.preventDefault();
    change(index, place(panels[index]!, ...by));
  };
  return (
    <>
      <div class={editing === null ? "board-grid" : "board-grid editing"} ref={grid}>
        {readingOrder(panels).map((index) => {
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
