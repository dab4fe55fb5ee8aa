/** All buckets and sources of the organization, to pick from and to plan with. */
import { listBuckets, type Bucket } from "../api/buckets";
import { listSources, type Source } from "../api/sources";
import type { Span } from "./range";
import type { FieldRef } from "./state";

export interface Catalog {
  buckets: { bucket: Bucket; sources: Source[] }[];
  byId: ReadonlyMap<string, Source>;
}

export async function fetchCatalog(signal: AbortSignal): Promise<Catalog> {
  const buckets = await listBuckets(signal);
  const lists = await Promise.all(buckets.map((bucket) => listSources(bucket._id, signal)));
  return {
    buckets: buckets.map((bucket, index) => ({ bucket, sources: lists[index] ?? [] })),
    byId: new Map(lists.flat().map((source) => [source._id, source])),
  };
}

/** The fields that are still there: a shared view may name what was deleted since. */
export const knownFields = (catalog: Catalog, fields: FieldRef[]): FieldRef[] =>
  fields.filter((ref) => catalog.byId.get(ref.sourceId)?.schema[ref.field] !== undefined);

/** Where the sources of these fields have points. */
export function extentOf(catalog: Catalog, fields: FieldRef[]): Span | null {
  const stats = fields.flatMap((ref) => catalog.byId.get(ref.sourceId)?.stats ?? []);
  const firsts = stats.flatMap(({ firstDataPoint }) => (firstDataPoint === null ? [] : Date.parse(firstDataPoint)));
  const lasts = stats.flatMap(({ lastDataPoint }) => (lastDataPoint === null ? [] : Date.parse(lastDataPoint)));
  return firsts.length === 0 ? null : { from: Math.min(...firsts), to: Math.max(...lasts) };
}

/** What is shown before anything was picked: the number fields of the source that heard from its sensor last. */
export function firstFields(catalog: Catalog): FieldRef[] {
  const sources = [...catalog.byId.values()].filter((source) => source.stats.lastDataPoint !== null);
  sources.sort((a, b) => Date.parse(b.stats.lastDataPoint ?? "") - Date.parse(a.stats.lastDataPoint ?? ""));
  const [source] = sources;
  if (source === undefined) return [];
  return Object.entries(source.schema)
    .filter(([, definition]) => definition.type === "number")
    .slice(0, 2)
    .map(([field]) => ({ bucketId: source.bucketId, sourceId: source._id, field }));
}
