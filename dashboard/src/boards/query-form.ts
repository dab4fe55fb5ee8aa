/** The fields of a form for a panel's query, and the query that they say. Pure. */
import type { PanelKind, PanelQuery } from "../api/boards";
import { BAND } from "../api/query";
import { TOP_DEFAULT, UNSPLIT, dimensionFilters, matchersOf, readConditions, type DimensionCondition } from "../explorer/dimensions";
import { isSplit, queryOf, type Plan } from "../explorer/plan";
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
  conditions: DimensionCondition[];
  groups: string[];
  /** Lines at most, as it is typed; all when empty. */
  top: string;
  least: boolean;
}

/** Of all series of a source together. */
const UNGROUPED = { conditions: [], groups: [], top: String(TOP_DEFAULT), least: false };

/** Rows of a chart that nobody has looked at yet. */
const POINTS = 1000;
const MEMBERS = ["bucketId", "filters", "aggregation", "groupBy", "maxPoints", "layout", "mergeSources", "groupByDimensions", "top"];
const FILTERS = ["dataSourceIds", "fields", "dimensions"];

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
  const [conditions, groups] = [conditionsOf(filters["dimensions"]), texts(query["groupByDimensions"])];
  if (conditions === null || groups === null) return null;
  const asked = { bucketId, sourceIds, fields, aggregation, groupBy, merge: query["mergeSources"] === true };
  const kept = keptOf(query["top"], asked);
  return kept === null ? null : { ...asked, conditions, groups, ...kept };
}

function conditionsOf(members: unknown): DimensionCondition[] | null {
  if (typeof members !== "object" || Array.isArray(members)) return members === undefined ? [] : null;
  return readConditions(members ?? {});
}

type Ranked = Pick<QueryForm, "aggregation" | "fields">;

/** By what the form compares groups: as it aggregates them, and in its first field. */
const rankOf = ({ aggregation, fields }: Ranked): { by: string; field?: string } => ({
  by: aggregation === "band" ? "avg" : aggregation,
  ...(fields[0] === undefined ? {} : { field: fields[0] }),
});

/** Null of a `top` that says more than the fields can. */
function keptOf(top: unknown, asked: Ranked): Pick<QueryForm, "top" | "least"> | null {
  if (top === undefined || top === null) return { top: "", least: false };
  if (typeof top !== "object") return null;
  const { n, by, field, order = "desc", ...others } = top as Record<string, unknown>;
  const rank = rankOf(asked);
  const is = (one: unknown, ...known: unknown[]) => known.includes(one);
  if (!is(by, rank.by) || !is(field, rank.field, undefined) || !is(order, "asc", "desc")) return null;
  if (typeof n !== "number" || Object.keys(others).length > 0) return null;
  return { top: String(n), least: order === "asc" };
}

export function queryOfForm(form: QueryForm, kind: PanelKind): PanelQuery {
  const { bucketId, sourceIds, fields, aggregation, groupBy, merge, conditions, groups, top, least } = form;
  if (kind === "rules") return { bucketId };
  const filters = {
    ...(sourceIds.length === 0 ? {} : { dataSourceIds: sourceIds }),
    ...(fields.length === 0 ? {} : { fields }),
    ...(conditions.length === 0 ? {} : { dimensions: matchersOf(conditions) }),
  };
  const asked = { bucketId, filters, layout: "columns" };
  if (aggregation === "") return { ...asked, maxPoints: POINTS };
  return {
    ...asked,
    aggregation: aggregation === "band" ? BAND : aggregation,
    groupBy: groupBy === "" ? "hour" : groupBy,
    ...(merge ? { mergeSources: true } : {}),
    ...(groups.length === 0 ? {} : { groupByDimensions: groups }),
    // Without a field, there is nothing to compare groups by.
    ...(groups.length === 0 || top.trim() === "" || fields.length === 0
      ? {}
      : { top: { n: Number(top), ...rankOf(form), ...(least ? { order: "asc" } : {}) } }),
  };
}

/** The queries that show what the explorer shows, one for each bucket; of groups by dimensions those of its plan. */
export function queriesOfView(state: ExplorerState, plan: Plan | null): PanelQuery[] {
  if (plan !== null && isSplit(plan)) return splitQueries(plan);
  const { fields, aggregation, groupBy, refinement = UNREFINED, dimensions = UNSPLIT } = state;
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
      ...UNGROUPED,
    };
    const { query, filters } = membersOf(refinement, names);
    const asked = queryOfForm(form, "lines");
    const series = dimensionFilters(dimensions, plan?.names ?? new Map(), form.sourceIds);
    return { ...asked, filters: { ...(asked["filters"] as object), ...filters, ...series }, ...query };
  });
}

/** What belongs to the board, or to the chart of the explorer alone, is no part of a panel. */
function splitQueries(plan: Plan): PanelQuery[] {
  return plan.buckets.map((bucket) => {
    const { limit: _, timezone: __, compare: ___, filters, ...query } = queryOf(plan, bucket, { from: 0, to: 0 });
    const { startTime: ____, endTime: _____, ...kept } = filters;
    return { ...query, filters: kept, layout: "columns" };
  });
}
