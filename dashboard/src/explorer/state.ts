/** What the explorer shows, as it stands in the URL: a view can be shared by its address. Pure. */
import { AGGREGATIONS, GROUPINGS, OFFSETS, type Aggregation, type GroupBy, type Offset } from "../api/query";
import { UNSPLIT, countOfChoice, readChoice, writeChoice, type DimensionChoice } from "./dimensions";
import { countOf, readRefinement, writeRefinement, type Refinement } from "./refinement";
import { endsNow, readRange, writeRange, type Range } from "./range";

/** A field of a source. */
export interface FieldRef {
  bucketId: string;
  sourceId: string;
  field: string;
}

export interface ExplorerState {
  fields: FieldRef[];
  range: Range;
  /** `auto`: averages, with the band of what they smoothed. */
  aggregation: Aggregation | "auto";
  /** `auto`: what the screen can show. `raw`: points, never grouped. */
  groupBy: GroupBy | "auto" | "raw";
  /** By how much earlier the time is that is drawn beside the range. */
  compare: Offset | null;
  live: boolean;
  /** Absent: the points as they are. */
  refinement?: Refinement;
  /** Absent: all series of a source together. */
  dimensions?: DimensionChoice;
}

/** More lines than this cannot be told apart, and make the URL too long to share. */
export const FIELDS_MAX = 24;

const ID = /^[0-9a-f]{24}$/;

/** All fields of an address, of which a view has the first `FIELDS_MAX`. */
export function readFields(search: URLSearchParams): FieldRef[] {
  const fields = new Map<string, FieldRef>();
  for (const text of search.getAll("f")) {
    const [bucketId = "", sourceId = ""] = text.split(".", 2);
    const field = text.slice(bucketId.length + sourceId.length + 2);
    if (!ID.test(bucketId) || !ID.test(sourceId) || field === "") continue;
    const ref = { bucketId, sourceId, field };
    fields.set(fieldId(ref), ref);
  }
  return [...fields.values()];
}

export function readState(search: URLSearchParams): ExplorerState {
  const range = readRange(search);
  const aggregation = search.get("agg") as Aggregation | null;
  const groupBy = search.get("by") as GroupBy | "raw" | null;
  const compare = search.get("vs") as Offset | null;
  const refinement = readRefinement(search);
  const dimensions = readChoice(search);
  return {
    ...(countOf(refinement) === 0 ? {} : { refinement }),
    ...(countOfChoice(dimensions) === 0 ? {} : { dimensions }),
    fields: readFields(search).slice(0, FIELDS_MAX),
    range,
    aggregation: aggregation !== null && AGGREGATIONS.includes(aggregation) ? aggregation : "auto",
    groupBy: groupBy !== null && (groupBy === "raw" || GROUPINGS.includes(groupBy)) ? groupBy : "auto",
    compare: compare !== null && OFFSETS.includes(compare) ? compare : null,
    live: search.get("live") === "1" && endsNow(range),
  };
}

export function writeState(state: ExplorerState): string {
  const search = new URLSearchParams();
  for (const { bucketId, sourceId, field } of state.fields) search.append("f", `${bucketId}.${sourceId}.${field}`);
  writeRange(state.range, search);
  if (state.aggregation !== "auto") search.set("agg", state.aggregation);
  if (state.groupBy !== "auto") search.set("by", state.groupBy);
  if (state.compare !== null) search.set("vs", state.compare);
  if (state.refinement !== undefined) writeRefinement(state.refinement, search);
  if (state.dimensions !== undefined) writeChoice(state.dimensions, search);
  if (state.live && endsNow(state.range)) search.set("live", "1");
  return `#/explore?${search.toString()}`;
}

export const sameField = (a: FieldRef, b: FieldRef): boolean =>
  a.bucketId === b.bucketId && a.sourceId === b.sourceId && a.field === b.field;

export const fieldId = (ref: FieldRef): string => `${ref.bucketId}.${ref.sourceId}.${ref.field}`;

/** A link to the explorer with these fields. */
export const exploreHref = (
  fields: FieldRef[],
  range: Range = { kind: "last", preset: "24h" },
  dimensions: Partial<DimensionChoice> = {},
): string =>
  writeState({
    fields: fields.slice(0, FIELDS_MAX),
    range,
    aggregation: "auto",
    groupBy: "auto",
    compare: null,
    live: false,
    dimensions: { ...UNSPLIT, ...dimensions },
  });
