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

/** A place of this size below all panels. */
export function placeBelow(panels: readonly Place[], w: number, h: number): Place {
  const bottom = Math.max(0, ...panels.map((panel) => panel.y + panel.h));
  const last = panels.filter((panel) => panel.y + panel.h === bottom);
  // Beside the last one, if nothing stands there.
  const beside = Math.max(0, ...last.map((panel) => panel.x + panel.w));
  const top = Math.max(0, bottom - h);
  const meets = (x: number, y: number) =>
    panels.some((one) => one.x < x + w && x < one.x + one.w && one.y < y + h && y < one.y + one.h);
  if (panels.length > 0 && beside + w <= COLUMNS && !meets(beside, top)) return { x: beside, y: top, w, h };
  return { x: 0, y: Math.min(bottom, ROW_MAX), w, h };
}

/** A place in words. */
export const spokenPlace = ({ x, y, w, h }: Place): string =>
  `column ${x + 1} to ${x + w}, row ${y + 1} to ${y + h}`;
