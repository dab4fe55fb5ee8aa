/** Boards, and the links that show a board to readers without a log-in. */
import { allPages, queryString, request, type Pagination } from "./client";
import type { Columns, QueryRow, Step, Value } from "./query";
import type { RuleState } from "./rules";

export const PANEL_KINDS = ["lines", "bars", "stat", "table", "states", "rules"] as const;
export type PanelKind = (typeof PANEL_KINDS)[number];

export const LEVELS = ["good", "warning", "critical"] as const;
export type Level = (typeof LEVELS)[number];

/** From this value on, up to the next threshold, values have this level. */
export interface Threshold {
  value: number;
  level: Level;
}

/** A body of a query; strings that are exactly `$name` stand for variables. */
export type PanelQuery = Record<string, unknown>;

/** A place in the grid of 12 columns. */
export interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Panel extends Place {
  title: string;
  kind: PanelKind;
  query: PanelQuery;
  unit: string | null;
  decimals: number | null;
  thresholds: Threshold[] | null;
}

export interface Variable {
  name: string;
  default: string | null;
  values: string[] | null;
}

/** A length such as `24h`, or both ends. */
export type BoardRange = string | { startTime: string; endTime: string };

export interface BoardContent {
  name: string;
  range: BoardRange;
  timezone: string | null;
  refreshSeconds: number | null;
  variables: Variable[];
  panels: Panel[];
}

export interface Board extends BoardContent {
  _id: string;
  version: number;
  createdAt: string;
  updatedAt: string;
}

export interface Share {
  _id: string;
  expiresAt: string;
  createdAt: string;
}

export interface NewShare extends Share {
  token: string;
  url: string;
}

type BoardAnswer = { board: Board };
const boardOf = ({ board }: BoardAnswer): Board => board;

export const listBoards = (signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/boards${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ boards: Board[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.boards, pagination: answer.pagination };
  });

export const getBoard = (id: string, signal?: AbortSignal) =>
  request<BoardAnswer>("GET", `/api/boards/${id}`, { signal }).then(boardOf);

export const createBoard = (body: BoardContent) => request<BoardAnswer>("POST", "/api/boards", { body }).then(boardOf);

/** `body` is what a file says; the server checks it. */
export const importBoard = (body: unknown) =>
  request<BoardAnswer>("POST", "/api/boards/import", { body }).then(boardOf);

/** Refused with 412 when the board has another version. */
export const updateBoard = (id: string, version: number, body: Partial<BoardContent>) =>
  request<BoardAnswer>("PATCH", `/api/boards/${id}`, { body, headers: { "If-Match": `"${version}"` } }).then(boardOf);

export const copyBoard = (id: string) => request<BoardAnswer>("POST", `/api/boards/${id}/copy`).then(boardOf);

export const deleteBoard = (id: string) => request<unknown>("DELETE", `/api/boards/${id}`);

/** Where the browser gets a board as a file. */
export const exportPath = (id: string): string => `/api/boards/${id}/export`;

export const listShares = (boardId: string, signal?: AbortSignal) =>
  request<{ shares: Share[] }>("GET", `/api/boards/${boardId}/shares?limit=1000`, { signal }).then((a) => a.shares);

export const shareBoard = (boardId: string, expiresAt: string) =>
  request<{ share: NewShare }>("POST", `/api/boards/${boardId}/share`, { body: { expiresAt } }).then((a) => a.share);

export const deleteShare = (boardId: string, shareId: string) =>
  request<unknown>("DELETE", `/api/boards/${boardId}/shares/${shareId}`);

/** What a query answers, in either layout; merged rows have no source, and several aggregations are objects. */
export interface PanelAnswer {
  columns?: Omit<Columns, "values"> & {
    values: Record<string, Value[] | Record<string, Value[]>>;
  };
  data?: (Omit<QueryRow, "dataSourceId" | "values"> & {
    dataSourceId?: string;
    values: Record<string, Value | Record<string, Value>>;
  })[];
  metadata: { hasMore: boolean; groupBy?: Step; downsampling?: { groupBy: Step } };
}

/** Where a rule stands, as a panel shows it. */
export interface PanelRule {
  _id: string;
  name: string;
  status: string;
  state: RuleState;
  overdue: boolean;
  lastTriggeredAt: string | null;
}

export const askPanel = (body: PanelQuery, signal?: AbortSignal) =>
  request<PanelAnswer>("POST", "/api/data/query", { body, signal });

export const askRules = (bucketId: string, signal?: AbortSignal) =>
  request<{ alertRules: PanelRule[] }>("GET", `/api/buckets/${bucketId}/alerts?limit=1000`, { signal });

/** The board of a link. Nobody is logged in for it: the session's cookie is not sent. */
export const getSharedBoard = (token: string, signal?: AbortSignal) =>
  request<BoardAnswer>("GET", `/api/shared/${encodeURIComponent(token)}`, { bearer: null, signal }).then(boardOf);

export const askSharedPanel = <T>(token: string, index: number, body: object, signal?: AbortSignal) =>
  request<T>("POST", `/api/shared/${encodeURIComponent(token)}/panels/${index}`, { bearer: null, body, signal });
