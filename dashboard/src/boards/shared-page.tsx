/** The board of a link: the same panels, without navigation and without a log-in. */
import { useEffect, useMemo } from "preact/hooks";
import { getSharedBoard, type BoardContent } from "../api/boards";
import { ApiError } from "../api/client";
import { useInterval, useLoad } from "../app/load";
import { useZone } from "../app/preferences";
import { replaceHash, useRoute } from "../app/route";
import { Switches } from "../app/shell";
import { setTitle } from "../app/title";
import { tidied } from "../explorer/range";
import { Logo } from "../parts/icon";
import { Empty, WhenLoaded } from "../parts/page";
import { BoardGrid } from "./board-grid";
import { Controls } from "./controls";
import { readBoardState, writeBoardState, type BoardState } from "./state";
import { useRounds } from "./use-rounds";

/** What stands on the board changes rarely. */
const BOARD_MS = 60_000;

const nobody = () => null;

export function SharedPage() {
  const { path, search } = useRoute();
  const token = path[1] ?? "";
  const loaded = useLoad(`shared ${token}`, (signal) => getSharedBoard(token, signal));
  const board = loaded.data;
  useInterval(BOARD_MS, loaded.refresh);
  const { round } = useRounds(board, true, true);
  const state = useMemo(() => readBoardState(search), [search]);
  const access = useMemo(() => ({ kind: "link" as const, token }), [token]);
  useEffect(() => setTitle(board?.name ?? "Board"), [board?.name]);
  const show = (to: BoardState) => replaceHash(`#/shared/${token}${writeBoardState(to)}`);
  const zone = useZone();
  const zoneOf = ({ timezone }: BoardContent) => timezone ?? zone;
  const gone = loaded.error instanceof ApiError && loaded.error.status === 404;
  return (
    <div class="shared">
      <header class="shared-head">
        <Logo />
        <h1>{board?.name ?? "Board"}</h1>
        <Switches />
      </header>
      <main id="main">
        {gone ? (
          <Empty title="This link shows nothing any more">
            It has ended, was removed, or its board was. Ask whoever gave it to you for another one.
          </Empty>
        ) : (
          <WhenLoaded loaded={loaded} what="board">
            {(shown) => (
              <>
                <Controls board={shown} state={state} onChange={show} sourceName={nobody} zone={zoneOf(shown)} shared />
                <BoardGrid
                  board={shown}
                  state={state}
                  access={access}
                  zone={zoneOf(shown)}
                  round={round}
                  sourceName={nobody}
                  onZoom={(span) => {
                    const { from, to } = tidied(span);
                    const range = { startTime: new Date(from).toISOString(), endTime: new Date(to).toISOString() };
                    show({ ...state, range });
                  }}
                  editing={null}
                />
              </>
            )}
          </WhenLoaded>
        )}
      </main>
    </div>
  );
}
