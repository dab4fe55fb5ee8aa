/** A board: its panels, its range and variables, on a page or on a wall; and its edit mode. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { createBoard, exportPath, getBoard, updateBoard, type Board, type BoardContent } from "../api/boards";
import { ApiError } from "../api/client";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { useZone } from "../app/preferences";
import { IfMay } from "../app/role";
import { go, guardLeaving, replaceHash, useRoute } from "../app/route";
import { fetchCatalog } from "../explorer/catalog";
import { tidied, type Span } from "../explorer/range";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox } from "../parts/forms";
import { Empty, Page, WhenLoaded } from "../parts/page";
import { BoardGrid } from "./board-grid";
import { Controls } from "./controls";
import { placeBelow } from "./grid";
import { PanelForm } from "./panel-form";
import { SettingsForm } from "./settings-form";
import { ShareDialog } from "./share-dialog";
import { readBoardState, writeBoardState, type BoardState } from "./state";
import { useRounds } from "./use-rounds";
import { dimensionOfVariable } from "./variables";

export function BoardPage({ id }: { id: string }) {
  const loaded = useLoad(`board ${id}`, (signal) => getBoard(id, signal), ["boards"]);
  if (loaded.data !== null) return <Shown key={id} board={loaded.data} reload={loaded.reload} />;
  return (
    <Page title="Board" trail={TRAIL}>
      <WhenLoaded loaded={loaded} what="board">
        {() => null}
      </WhenLoaded>
    </Page>
  );
}

const TRAIL = [{ href: "#/boards", label: "Boards" }];

/** A new panel's width and height. */
const [WIDTH, HEIGHT] = [6, 6];

function Shown({ board, reload }: { board: Board; reload: () => void }) {
  const { search } = useRoute();
  const ownZone = useZone();
  const state = useMemo(() => readBoardState(search), [search]);
  const [draft, setDraft] = useState<{ of: Board; content: BoardContent } | null>(null);
  const [dialog, setDialog] = useState<"settings" | "share" | number | null>(null);
  const catalog = useLoad("catalog", fetchCatalog, ["buckets", "sources"]);
  const shown: BoardContent = draft?.content ?? board;
  const zone = shown.timezone ?? ownZone;
  const { round, next } = useRounds(draft === null ? shown : null, false, state.wall);
  const show = (to: BoardState) => replaceHash(`#/boards/${board._id}${writeBoardState(to)}`);
  const changed = draft !== null && JSON.stringify(contentOf(draft.of)) !== JSON.stringify(draft.content);
  useEffect(() => (changed ? guardLeaving(() => setDraft(null)) : undefined), [changed]);
  useWall(state, show);
  const actions = useRef<HTMLDivElement>(null);
  const isEditing = draft !== null;
  const wasEditing = useRef(false);
  const hasShown = useRef(false);
  // The buttons of one mode are not those of the other, and with the first panel the one that opened its form is gone:
  // the focus goes to the first button, not to what took a place.
  useEffect(() => {
    const isLost = wasEditing.current !== isEditing || document.activeElement === document.body;
    if (isLost && dialog === null && hasShown.current) actions.current?.querySelector("button")?.focus();
    wasEditing.current = isEditing;
    hasShown.current = true;
  }, [isEditing, dialog]);

  const edit = (part: Partial<BoardContent>) =>
    setDraft({ of: draft?.of ?? board, content: { ...contentOf(shown), ...part } });
  const saving = useAction(async () => {
    if (draft === null) return;
    if (changed) await updateBoard(board._id, draft.of.version, draft.content);
    setDraft(null);
    reload();
    notify("Board saved.");
  });
  const copying = useAction(async () => {
    if (draft === null) return;
    const copy = await createBoard({ ...draft.content, name: `${draft.content.name} (mine)`.slice(0, 100) });
    leave();
    go(`#/boards/${copy._id}`);
  });
  const leave = () => {
    setDraft(null);
    saving.clear();
    reload();
  };
  const conflict = saving.error instanceof ApiError && saving.error.status === 412;
  const sourceName = useCallback((id: string) => catalog.data?.byId.get(id)?.name ?? null, [catalog.data]);
  const zoom = (span: Span) => {
    const { from, to } = tidied(span);
    go(
      `#/boards/${board._id}${writeBoardState({ ...state, range: { startTime: new Date(from).toISOString(), endTime: new Date(to).toISOString() } })}`,
    );
  };
  const grid = (
    <BoardGrid
      board={shown}
      state={state}
      access={OWN}
      zone={zone}
      round={round}
      sourceName={sourceName}
      onZoom={zoom}
      editing={draft === null ? null : { onChange: (panels) => edit({ panels }), onEdit: setDialog }}
    />
  );
  if (state.wall) {
    return (
      <div class="wall">
        <h1>{shown.name}</h1>
        {grid}
      </div>
    );
  }
  return (
    <Page
      title={shown.name}
      trail={TRAIL}
      class="board-page"
      actions={
        draft === null ? (
          <div class="actions" key="look" ref={actions}>
            <Button small icon="refresh" onClick={next}>
              Reload
            </Button>
            <IfMay>
              <Button small icon="edit" onClick={() => setDraft({ of: board, content: contentOf(board) })}>
                Edit
              </Button>
              <Button small onClick={() => setDialog("share")}>
                Share
              </Button>
            </IfMay>
            <a class="button plain small" href={exportPath(board._id)} download>
              <span>Export</span>
            </a>
            <Button small onClick={() => show({ ...state, wall: true })}>
              Wall
            </Button>
          </div>
        ) : (
          <div class="actions" key="edit" ref={actions}>
            <Button small icon="plus" onClick={() => setDialog(shown.panels.length)}>
              Add a panel
            </Button>
            <Button small onClick={() => setDialog("settings")}>
              Settings
            </Button>
            <Button small onClick={leave}>
              Discard
            </Button>
            <Button small look="primary" busy={saving.running} onClick={() => void saving.run()}>
              Save
            </Button>
          </div>
        )
      }
    >
      {conflict ? (
        <div class="warn-box" role="alert">
          <p>
            <strong>Somebody else has changed this board since you began.</strong> Your changes are not saved.
          </p>
          <div class="actions">
            <Button small busy={copying.running} onClick={() => void copying.run()}>
              Save mine as another board
            </Button>
            <Button small onClick={leave}>
              Discard mine and show theirs
            </Button>
          </div>
          <ErrorBox error={copying.error} />
        </div>
      ) : (
        <ErrorBox error={saving.error} />
      )}
      <Controls
        board={shown}
        state={state}
        onChange={show}
        sourceName={sourceName}
        dimensionOf={(variable) =>
          catalog.data === null ? null : dimensionOfVariable(variable, shown, state, catalog.data)
        }
        zone={zone}
      />
      {shown.panels.length === 0 ? (
        <Empty
          title="A board without panels"
          action={
            <IfMay>
              <Button
                look="primary"
                onClick={() => {
                  edit({});
                  setDialog(0);
                }}
              >
                Add a panel
              </Button>
            </IfMay>
          }
        >
          A panel shows what a query answers. “Add to board” in the explorer makes one, too.
        </Empty>
      ) : (
        grid
      )}
      {typeof dialog === "number" && (catalog.data === null || catalog.data.buckets.length === 0) && (
        <Dialog title="Add a panel" onClose={() => setDialog(null)}>
          <WhenLoaded loaded={catalog} what="sources">
            {() => (
              <p>
                A panel shows points of a bucket, and there is none yet. <a href="#/">Show me how to start</a>
              </p>
            )}
          </WhenLoaded>
        </Dialog>
      )}
      {typeof dialog === "number" && catalog.data !== null && catalog.data.buckets.length > 0 && (
        <PanelForm
          panel={shown.panels[dialog] ?? null}
          board={shown}
          catalog={catalog.data}
          onClose={() => setDialog(null)}
          onDone={(panel) => {
            const place = shown.panels[dialog] ?? placeBelow(shown.panels, WIDTH, HEIGHT);
            const placed = { ...panel, x: place.x, y: place.y, w: place.w, h: place.h };
            edit({ panels: [...shown.panels.slice(0, dialog), placed, ...shown.panels.slice(dialog + 1)] });
            setDialog(null);
          }}
        />
      )}
      {dialog === "settings" && (
        <SettingsForm
          board={shown}
          onClose={() => setDialog(null)}
          onDone={(part) => {
            edit(part);
            setDialog(null);
          }}
        />
      )}
      {dialog === "share" && <ShareDialog board={board} onClose={() => setDialog(null)} />}
    </Page>
  );
}

const OWN = { kind: "own" } as const;

export function contentOf({ name, range, timezone, refreshSeconds, variables, panels }: BoardContent): BoardContent {
  return { name, range, timezone, refreshSeconds, variables, panels };
}

/** A wall has the whole screen, until Escape. */
function useWall(state: BoardState, show: (state: BoardState) => void): void {
  useEffect(() => {
    if (!state.wall) return;
    document.documentElement.classList.add("on-wall");
    // Where the browser does not allow it, the page itself is the wall.
    void document.documentElement.requestFullscreen?.().catch(() => undefined);
    const end = () => show({ ...state, wall: false });
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape") end();
    };
    const onChange = () => {
      if (document.fullscreenElement === null) end();
    };
    window.addEventListener("keydown", onKey);
    document.addEventListener("fullscreenchange", onChange);
    return () => {
      document.documentElement.classList.remove("on-wall");
      window.removeEventListener("keydown", onKey);
      document.removeEventListener("fullscreenchange", onChange);
      if (document.fullscreenElement !== null) void document.exitFullscreen();
    };
  }, [state.wall]);
}
