/** Annotations of the sources on the chart, and of their buckets as a whole. */
import { listAnnotations, type Annotation } from "../api/annotations";
import type { ChartNote } from "../chart/notes";
import type { Span } from "./range";
import type { FieldRef } from "./state";

export interface PlacedNote extends ChartNote {
  annotation: Annotation;
}

export async function fetchNotes(fields: FieldRef[], signal: AbortSignal): Promise<PlacedNote[]> {
  const sources = new Set(fields.map((ref) => ref.sourceId));
  const buckets = [...new Set(fields.map((ref) => ref.bucketId))];
  const lists = await Promise.all(buckets.map((bucketId) => listAnnotations(bucketId, signal)));
  const about = lists.flat().filter(({ dataSourceId }) => dataSourceId === null || sources.has(dataSourceId));
  return about.map(placed).sort((a, b) => a.at - b.at);
}

const placed = (annotation: Annotation): PlacedNote => ({
  id: annotation._id,
  at: Date.parse(annotation.at),
  until: annotation.until === null ? null : Date.parse(annotation.until),
  text: annotation.text,
  annotation,
});

/** Both ends belong to the span and to a note. */
export const notesWithin = (notes: PlacedNote[], { from, to }: Span): PlacedNote[] =>
  notes.filter(({ at, until }) => at <= to && (until ?? at) >= from);
