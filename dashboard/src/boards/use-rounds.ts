/** The rounds in which a board reads its panels again. */
import { useState } from "preact/hooks";
import type { BoardContent } from "../api/boards";
import { useInterval } from "../app/load";

/** A link takes 60 requests a minute; some are left for other readers and for opening the page. */
const LINK_CALLS_PER_MINUTE = 40;
/** A board that says nothing is read again on a wall, which nobody reloads. */
export const WALL_SECONDS = 30;

export function useRounds(board: BoardContent | null, shared: boolean, wall: boolean) {
  const [round, setRound] = useState(0);
  const seconds = board === null ? null : (board.refreshSeconds ?? (wall ? WALL_SECONDS : null));
  const least = shared && board !== null ? ((board.panels.length + 1) / LINK_CALLS_PER_MINUTE) * 60 : 0;
  const next = () => setRound((n) => n + 1);
  useInterval(seconds === null ? null : Math.max(seconds, least) * 1000, next);
  return { round, next };
}
