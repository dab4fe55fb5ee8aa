/** What a panel shows, read when the panel is near the screen and again with each round of its board. */
import { useEffect, useRef, useState } from "preact/hooks";
import {
  askPanel,
  askRules,
  askSharedPanel,
  type BoardContent,
  type Panel,
  type PanelAnswer,
  type PanelQuery,
  type PanelRule,
} from "../api/boards";
import { isAbort } from "../api/client";
import { MAX_POINTS_RANGE } from "../api/query";
import { within } from "../app/deadline";
import { asError } from "../app/load";
import { timesOf, type Span } from "../explorer/range";
import { plotWidth } from "../explorer/view";
import { spanOfRange, substituted, type BoardState } from "./state";

const ANSWER_MS_MAX = 30_000;
/** How far from the screen a panel is read already. */
const NEAR = "200px";

/** Whose board it is: one's own, or that of a link. */
export type Access = { kind: "own" } | { kind: "link"; token: string };

export type PanelData = { span: Span } & (
  | { kind: "rows"; answer: PanelAnswer }
  | { kind: "rules"; rules: PanelRule[] }
  | { kind: "missing"; variable: string }
);

export interface PanelLoad {
  data: PanelData | null;
  error: Error | null;
  loading: boolean;
}

interface Asked {
  board: BoardContent;
  index: number;
  state: BoardState;
  access: Access;
  timezone: string | null;
  widthPx: number;
}

/** Whether the element is near the screen. */
export function useNear(element: { current: HTMLElement | null }): boolean {
  const [near, setNear] = useState(false);
  useEffect(() => {
    const shown = element.current;
    if (shown === null) return;
    const observer = new IntersectionObserver(([entry]) => setNear(entry?.isIntersecting ?? false), {
      rootMargin: NEAR,
    });
    observer.observe(shown);
    return () => observer.disconnect();
  }, []);
  return near;
}

/** `round` counts the board's refreshes. What was read before stays until the answer is here. */
export function usePanel(asked: Asked, near: boolean, round: number): PanelLoad {
  const [load, setLoad] = useState<PanelLoad>({ data: null, error: null, loading: true });
  const { board, index, state, access, timezone } = asked;
  const panel = board.panels[index]!;
  const width = plotWidth(asked.widthPx);
  const values = [...state.values].flat();
  const range = state.range ?? board.range;
  const what = JSON.stringify([panel.kind, panel.query, board.variables, range, values, access, timezone, width]);
  const latest = useRef(asked);
  latest.current = asked;
  const under = useRef<{ what: string; abort: AbortController } | null>(null);
  const read = useRef<{ what: string; round: number } | null>(null);

  useEffect(() => {
    if (!near || asked.widthPx === 0) return;
    if (read.current?.what === what && read.current.round === round) return;
    // A slow server is not asked faster than it answers.
    if (under.current?.what === what) return;
    under.current?.abort.abort();
    const abort = new AbortController();
    under.current = { what, abort };
    setLoad((before) => ({ ...before, loading: true }));
    within(ANSWER_MS_MAX, abort.signal, (signal) => readPanel(latest.current, signal)).then(
      (data) => done({ data, error: null, loading: false }),
      (caught: unknown) => {
        if (!isAbort(caught)) done({ data: null, error: asError(caught), loading: false });
      },
    );
    function done(next: PanelLoad): void {
      if (abort.signal.aborted) return;
      under.current = null;
      read.current = { what, round };
      // What failed in between says so, and keeps what it had.
      setLoad((before) => ({ ...next, data: next.data ?? before.data }));
    }
  }, [what, near, round, asked.widthPx > 0]);
  useEffect(() => () => under.current?.abort.abort(), []);
  return load;
}

async function readPanel(asked: Asked, signal: AbortSignal): Promise<PanelData> {
  const { board, index, state, access } = asked;
  const panel = board.panels[index]!;
  const span = spanOfRange(state.range ?? board.range, Date.now());
  if (access.kind === "link") {
    const body = state.range === null ? {} : timesOf(span);
    if (panel.kind === "rules") {
      const { alertRules } = await askSharedPanel<{ alertRules: PanelRule[] }>(access.token, index, body, signal);
      return { span, kind: "rules", rules: alertRules };
    }
    const answer = await askSharedPanel<PanelAnswer>(access.token, index, body, signal);
    return { span: spanOfQuery(panel.query, span), kind: "rows", answer };
  }
  const found = substituted(panel.query, board, state);
  if ("missing" in found) return { span, kind: "missing", variable: found.missing };
  if (panel.kind === "rules") {
    const { alertRules } = await askRules(String(found.query["bucketId"]), signal);
    return { span, kind: "rules", rules: alertRules };
  }
  const answer = await askPanel(queryOf(panel, found.query, span, asked), signal);
  return { span: spanOfQuery(found.query, span), kind: "rows", answer };
}

/** A panel's query with what the board adds: the range, the time zone, and as much as the screen shows. */
export function queryOf(
  panel: Panel,
  query: PanelQuery,
  span: Span,
  { timezone, widthPx }: Pick<Asked, "timezone" | "widthPx">,
): PanelQuery {
  const filters = { ...timesOf(span), ...given(query["filters"]) };
  const zone = query["timezone"] ?? timezone;
  const { least, most } = MAX_POINTS_RANGE;
  const chooses = query["maxPoints"] !== undefined && panel.kind !== "stat" && panel.kind !== "table";
  return {
    ...query,
    filters,
    layout: "columns",
    ...(zone === null ? {} : { timezone: zone }),
    ...(chooses ? { maxPoints: Math.max(least, Math.min(most, plotWidth(widthPx))) } : {}),
  };
}

/** Members that are not null: null is as if absent. */
function given(members: unknown): Record<string, unknown> {
  if (typeof members !== "object" || members === null) return {};
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}

/** A query may have bounds of its own. */
function spanOfQuery(query: PanelQuery, span: Span): Span {
  const { startTime, endTime } = given(query["filters"]);
  const at = (text: unknown, otherwise: number) => {
    const found = typeof text === "string" ? Date.parse(text) : NaN;
    return Number.isFinite(found) ? found : otherwise;
  };
  return { from: at(startTime, span.from), to: at(endTime, span.to) };
}
