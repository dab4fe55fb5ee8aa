/** The fields of a form for a panel's query, and the query that they say. Pure. */
import type { PanelKind, PanelQuery } from "../api/boards";
import { BAND } from "../api/query";
import { UNREFINED, membersOf, storedFields } from "../explorer/refinement";
import type { ExplorerState } from "../explorer/state";

export interface QueryForm {
  bucketId: string;
  sourceIds: string[];
  fields: string[];
  /** Empty: averages as the screen needs them; `band`: averages by name, with least and greatest. */
  aggregation: string;
  groupBy: string;
  merge: boolean;
}

/** Rows of a chart that nobody has looked at yet. */
const POINTS = 1000;
const MEMBERS = ["bucketId", "filters", "aggregation", "groupBy", "maxPoints", "layout", "mergeSources"];
const FILTERS = ["dataSourceIds", "fields"];

const texts = (value: unknown): string[] | null =>
  value === undefined || value === null
    ? []
    : Array.isArray(value) && value.every((one) => typeof one === "string")
      ? value
      : null;

/** Null for a query that says more than the fields can. */
export function formOf(query: PanelQuery): QueryForm | null {
  const filters = (query["filters"] ?? {}) as Record<string, unknown>;
  if (typeof filters !== "object" || !Object.keys(query).every((name) => MEMBERS.includes(name))) return null;
  if (!Object.keys(filters).every((name) => FILTERS.includes(name))) return null;
  const [sourceIds, fields] = [texts(filters["dataSourceIds"]), texts(filters["fields"])];
  const aggregation = JSON.stringify(query["aggregation"]) === JSON.stringify(BAND) ? "band" : (query["aggregation"] ?? "");
  const [bucketId, groupBy] = [query["bucketId"] ?? "", query["groupBy"] ?? ""];
  if (sourceIds === null || fields === null) return null;
  if (typeof aggregation !== "string" || typeof bucketId !== "string" || typeof groupBy !== "string") return null;
  return { bucketId, sourceIds, fields, aggregation, groupBy, merge: query["mergeSources"] === true };
}

export function queryOfForm(form: QueryForm, kind: PanelKind): PanelQuery {
  const { bucketId, sourceIds, fields, aggregation, groupBy, merge } = form;
  if (kind === "rules") return { bucketId };
  const filters = {
    ...(sourceIds.length === 0 ? {} : { dataSourceIds: sourceIds }),
    ...(fields.length === 0 ? {} : { fields }),
  };
  const asked = { bucketId, filters, layout: "columns" };
  if (aggregation === "") return { ...asked, maxPoints: POINTS };
  return {
    ...asked,
    aggregation: aggregation === "band" ? BAND : aggregation,
    groupBy: groupBy === "" ? "hour" : groupBy,
    ...(merge ? { mergeSources: true } : {}),
  };
}

/** The queries that show what the explorer shows, one for each bucket. */
export function queriesOfView({ fields, aggregation, groupBy, refinement = UNREFINED }: ExplorerState): PanelQuery[] {
  const buckets = [...new Set(fields.map(({ bucketId }) => bucketId))];
  return buckets.map((bucketId) => {
    const own = fields.filter((ref) => ref.bucketId === bucketId);
    const named = groupBy !== "auto" && groupBy !== "raw";
    const merge = refinement.merged && groupBy !== "raw";
    const names = [...new Set(own.map(({ field }) => field))];
    const form: QueryForm = {
      bucketId,
      sourceIds: [...new Set(own.map(({ sourceId }) => sourceId))],
      fields: storedFields(refinement, names),
      // What is grouped by the screen's width has no name.
      aggregation: aggregation === "auto" ? (named || merge ? "band" : "") : aggregation,
      groupBy: named ? groupBy : "hour",
      merge,
    };
    const { query, filters } = membersOf(refinement, names);
    const asked = queryOfForm(form, "lines");
    return { ...asked, filters: { ...(asked["filters"] as object), ...filters }, ...query };
  });
}
