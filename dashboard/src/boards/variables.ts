/** What a variable of a board stands for. Pure. */
import type { BoardContent } from "../api/boards";
import type { SourcePath } from "../api/dimensions";
import type { Catalog } from "../explorer/catalog";
import { substituted, type BoardState } from "./state";

/** A dimension, and the sources that may have it. */
export interface VariableDimension {
  name: string;
  sources: SourcePath[];
}

/** The dimension for a value of which the variable stands in some panel; null where it stands for something else. */
export function dimensionOfVariable(
  variable: string,
  board: BoardContent,
  state: BoardState,
  { buckets }: Catalog,
): VariableDimension | null {
  for (const { query } of board.panels) {
    const found = Object.entries(filtersOf(query).dimensions).find(([, matcher]) => names(matcher, `$${variable}`));
    if (found === undefined) continue;
    // Its own value does not matter for the sources.
    const told = { ...state, values: new Map([...state.values, [variable, ""]]) };
    const asked = substituted(query, board, told);
    if ("missing" in asked) continue;
    const { dataSourceIds } = filtersOf(asked.query);
    const bucket = buckets.find((one) => one.bucket._id === asked.query["bucketId"]);
    const sources = (bucket?.sources ?? []).filter(
      ({ _id, dimensions }) => (dataSourceIds.length === 0 || dataSourceIds.includes(_id)) && dimensions !== null,
    );
    const having = sources.filter(({ dimensions }) => dimensions === "all" || dimensions?.includes(found[0]));
    if (having.length === 0) continue;
    return { name: found[0], sources: having.map(({ bucketId, _id }) => ({ bucketId, sourceId: _id })) };
  }
  return null;
}

function filtersOf(query: Record<string, unknown>): { dimensions: Record<string, unknown>; dataSourceIds: unknown[] } {
  const { dimensions, dataSourceIds } = (query["filters"] ?? {}) as Record<string, unknown>;
  return {
    dimensions: typeof dimensions === "object" && dimensions !== null ? (dimensions as Record<string, unknown>) : {},
    dataSourceIds: Array.isArray(dataSourceIds) ? dataSourceIds : [],
  };
}

/** Whether a matcher has this text as a value. */
function names(matcher: unknown, text: string): boolean {
  if (matcher === text) return true;
  if (typeof matcher !== "object" || matcher === null) return false;
  return Object.values(matcher).some((member) => names(member, text));
}
