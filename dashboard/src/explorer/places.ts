/** Places in the palette for lines that come and go: each keeps its own while it is there. Pure. */

/** Of these, each has a colour of its own; further ones are dashed. */
const COLOURS = 8;

/**
 * A place for each id. What had one keeps it; others get one that follows from their name, so that the same lines have
 * the same colours after a reload.
 */
export function placesOf(ids: readonly string[], before: ReadonlyMap<string, number>): Map<string, number> {
  const places = new Map<string, number>();
  for (const id of ids) {
    const kept = before.get(id);
    if (kept !== undefined) places.set(id, kept);
  }
  const taken = new Set(places.values());
  // In the order of their names, whatever the order in which they came.
  for (const id of ids.filter((one) => !places.has(one)).sort()) {
    let place = hash(id) % COLOURS;
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
