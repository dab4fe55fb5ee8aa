/** Places in the palette for lines that come and go: each keeps its own while it is there. Pure. */

/** Of these, each has a colour of its own; further ones are dashed. */
const COLOURS = 8;

/** A line: `name` is what it is called wherever it is drawn. */
export interface Named {
  id: string;
  name: string;
}

/**
 * A place for each line, by its id. What had one keeps it; others get one that follows from their name, so that a line
 * has the same colour after a reload, and as a rule in other charts.
 */
export function placesOf(lines: readonly Named[], before: ReadonlyMap<string, number>): Map<string, number> {
  const places = new Map<string, number>();
  for (const { id } of lines) {
    const kept = before.get(id);
    if (kept !== undefined) places.set(id, kept);
  }
  const taken = new Set(places.values());
  // In the order of their names, whatever the order in which they came.
  const added = lines.filter(({ id }) => !places.has(id));
  added.sort((a, b) => (a.name === b.name ? (a.id < b.id ? -1 : 1) : a.name < b.name ? -1 : 1));
  for (const { id, name } of added) {
    let place = hash(name) % COLOURS;
    while (taken.has(place)) place = nextOf(place, taken);
    taken.add(place);
    places.set(id, place);
  }
  return places;
}

/** The next free place of the same round of colours, else the first free one of the next round. */
function nextOf(place: number, taken: ReadonlySet<number>): number {
  const round = Math.floor(place / COLOURS) * COLOURS;
  for (let step = 1; step < COLOURS; step++) {
    const other = round + ((place - round + step) % COLOURS);
    if (!taken.has(other)) return other;
  }
  return place + COLOURS;
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}
