/** Places on a grid of 12 columns. Pure. */
import type { Place } from "../api/boards";

export const COLUMNS = 12;
export const ROW_MAX = 1_000;
export const ROWS_MAX = 100;

/** By rows from the top, then from the left: how panels are read, and how they stack on a phone. */
export function readingOrder<T extends Place>(panels: readonly T[]): number[] {
  const places = panels.map((panel, index) => ({ panel, index }));
  places.sort((a, b) => a.panel.y - b.panel.y || a.panel.x - b.panel.x || a.index - b.index);
  return places.map(({ index }) => index);
}

const within = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value));

/** Moved by so many columns and rows, as far as the grid goes. */
export const moved = <T extends Place>(panel: T, columns: number, rows: number): T => ({
  ...panel,
  x: within(panel.x + columns, 0, COLUMNS - panel.w),
  y: within(panel.y + rows, 0, ROW_MAX),
});

/** Made wider and higher by so many columns and rows, as far as the grid goes. */
export const resized = <T extends Place>(panel: T, columns: number, rows: number): T => ({
  ...panel,
  w: within(panel.w + columns, 1, COLUMNS - panel.x),
  h: within(panel.h + rows, 1, ROWS_MAX),
});

const meet = (a: Place, b: Place): boolean =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

/** The panels with one of them at another place; those that it would cover move down, and so on. */
export function withPlace<T extends Place>(panels: readonly T[], index: number, panel: T): T[] {
  const placed = [panel];
  const result = [...panels];
  result[index] = panel;
  for (const at of readingOrder(panels)) {
    if (at === index) continue;
    let next = panels[at]!;
    for (let met = placed.find((one) => meet(one, next)); met !== undefined && next.y < ROW_MAX; ) {
      next = { ...next, y: Math.min(ROW_MAX, met.y + met.h) };
      met = placed.find((one) => meet(one, next));
    }
    placed.push(next);
    result[at] = next;
  }
  return result;
}

/**
 * The panels with one of them a place earlier (-1) or later (1) in reading order. Two of one size change places; others
 * are placed again row by row, since there is no room for one where the other was.
 */
export function inOrder<T extends Place>(panels: readonly T[], index: number, direction: -1 | 1): T[] {
  const order = readingOrder(panels);
  const from = order.indexOf(index);
  const other = order[from + direction];
  if (other === undefined) return [...panels];
  const [one, two] = [panels[index]!, panels[other]!];
  if (one.w === two.w && one.h === two.h) {
    const result = [...panels];
    result[index] = { ...one, x: two.x, y: two.y };
    result[other] = { ...two, x: one.x, y: one.y };
    return result;
  }
  [order[from], order[from + direction]] = [other, index];
  return inRows(panels, order);
}

/** From the left as far as there is room, then below the highest of the row. */
function inRows<T extends Place>(panels: readonly T[], order: readonly number[]): T[] {
  const result = [...panels];
  let [x, y, bottom] = [0, 0, 0];
  for (const index of order) {
    const panel = panels[index]!;
    if (x + panel.w > COLUMNS) [x, y] = [0, Math.min(bottom, ROW_MAX)];
    result[index] = { ...panel, x, y };
    x += panel.w;
    bottom = Math.max(bottom, y + panel.h);
  }
  return result;
}

/** As wide as the grid; one that is already, half as wide. */
export const widened = <T extends Place>(panel: T): T =>
  panel.w === COLUMNS ? { ...panel, w: COLUMNS / 2 } : { ...panel, x: 0, w: COLUMNS };

/** A place of this size below all panels. */
export function placeBelow(panels: readonly Place[], w: number, h: number): Place {
  const bottom = Math.max(0, ...panels.map((panel) => panel.y + panel.h));
  const last = panels.filter((panel) => panel.y + panel.h === bottom);
  // Beside the last one, if nothing stands there.
  const beside = Math.max(0, ...last.map((panel) => panel.x + panel.w));
  const top = Math.max(0, bottom - h);
  const isFree = !panels.some((one) => meet(one, { x: beside, y: top, w, h }));
  if (panels.length > 0 && beside + w <= COLUMNS && isFree) return { x: beside, y: top, w, h };
  return { x: 0, y: Math.min(bottom, ROW_MAX), w, h };
}

/** A place in words. */
export const spokenPlace = ({ x, y, w, h }: Place): string =>
  `column ${x + 1} to ${x + w}, row ${y + 1} to ${y + h}`;
