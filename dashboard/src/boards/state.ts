/** What a board shows to this reader: range and variables, as they stand in the URL. Pure. */
import type { BoardContent, BoardRange, PanelQuery, Variable } from "../api/boards";
import type { Span } from "../explorer/range";

export interface BoardState {
  /** Null: that of the board. */
  range: BoardRange | null;
  /** By name: what the reader has chosen. */
  values: ReadonlyMap<string, string>;
  /** Full screen, without navigation. */
  wall: boolean;
}

const LENGTH = /^([1-9][0-9]*)([smhdw])$/;
const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };
const LENGTH_SECONDS_MAX = 52 * 604_800;

/** Ranges that are offered, beside that of the board. */
export const LENGTHS = ["15m", "1h", "6h", "24h", "7d", "30d", "13w", "52w"];

/** Seconds of a length such as `24h`; null for anything else. */
export function lengthSeconds(text: string): number | null {
  const found = LENGTH.exec(text);
  if (found === null) return null;
  const seconds = Number(found[1]) * UNIT_SECONDS[found[2]!]!;
  return seconds <= LENGTH_SECONDS_MAX ? seconds : null;
}

export function readBoardState(search: URLSearchParams): BoardState {
  const [from, to] = [Date.parse(search.get("from") ?? ""), Date.parse(search.get("to") ?? "")];
  const length = search.get("r") ?? "";
  const between = from < to ? { startTime: new Date(from).toISOString(), endTime: new Date(to).toISOString() } : null;
  const values = [...search].flatMap(([name, value]): [string, string][] =>
    name.startsWith("v.") ? [[name.slice(2), value]] : [],
  );
  return {
    range: between ?? (lengthSeconds(length) === null ? null : length),
    values: new Map(values),
    wall: search.get("wall") === "1",
  };
}

/** The query string of a state, with the question mark; empty for a board as it is. */
export function writeBoardState(state: BoardState): string {
  const search = new URLSearchParams();
  if (typeof state.range === "string") search.set("r", state.range);
  else if (state.range !== null) {
    search.set("from", state.range.startTime);
    search.set("to", state.range.endTime);
  }
  for (const [name, value] of state.values) search.set(`v.${name}`, value);
  if (state.wall) search.set("wall", "1");
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

export function spanOfRange(range: BoardRange, now: number): Span {
  if (typeof range !== "string") return { from: Date.parse(range.startTime), to: Date.parse(range.endTime) };
  return { from: now - (lengthSeconds(range) ?? 86_400) * 1000, to: now };
}

/** What stands for a variable: what the reader chose, else its default, else its first choice. */
export const valueOf = (variable: Variable, state: BoardState): string | null =>
  state.values.get(variable.name) ?? variable.default ?? variable.values?.[0] ?? null;

export type Substituted = { query: PanelQuery } | { missing: string };

/** A query with the variables' values in their places, or the first variable that has none. */
export function substituted(query: PanelQuery, { variables }: BoardContent, state: BoardState): Substituted {
  let missing: string | null = null;
  const put = (value: unknown): unknown => {
    if (typeof value === "string" && value.startsWith("$")) {
      const variable = variables.find(({ name }) => name === value.slice(1));
      if (variable === undefined) return value;
      const found = valueOf(variable, state);
      if (found === null) missing ??= variable.name;
      return found;
    }
    if (Array.isArray(value)) return value.map(put);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, put(member)]));
  };
  const done = put(query) as PanelQuery;
  return missing === null ? { query: done } : { missing };
}
