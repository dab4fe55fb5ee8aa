/** What the explorer shows, as a panel of a board. */
import { useState } from "preact/hooks";
import { createBoard, listBoards, updateBoard, type BoardContent, type Panel } from "../api/boards";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { placeBelow } from "../boards/grid";
import { queriesOfView } from "../boards/query-form";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox, SelectField, TextField } from "../parts/forms";
import { WhenLoaded } from "../parts/page";
import type { Plan } from "./plan";
import type { ExplorerState } from "./state";

const NEW = "";
/** A new panel's width and height. */
const [WIDTH, HEIGHT] = [6, 6];

export interface AddToBoardProps {
  state: ExplorerState;
  /** Of what is shown; null while nothing is. */
  plan: Plan | null;
  /** A title to begin with. */
  title: string;
  unit: string | null;
  onClose: () => void;
}

export function AddToBoard({ state, plan, title: first, unit, onClose }: AddToBoardProps) {
  const boards = useLoad("boards", listBoards, ["boards"]);
  const [title, setTitle] = useState(first.slice(0, 100));
  const [picked, setPicked] = useState<string | null>(null);
  const [name, setName] = useState("Control room");
  const last = boards.data?.at(-1)?._id ?? NEW;
  const chosen = picked ?? last;
  const { run, running, error } = useAction(async () => {
    const known = boards.data?.find((board) => board._id === chosen);
    const panels = queriesOfView(state, plan).reduce<Panel[]>(
      (all, query) => [
        ...all,
        { title, kind: "lines", query, unit, decimals: null, thresholds: null, ...placeBelow(all, WIDTH, HEIGHT) },
      ],
      known?.panels ?? [],
    );
    if (known === undefined) {
      const range = state.range.kind === "last" && state.range.preset !== "all" ? LENGTHS[state.range.preset] : "24h";
      const board: BoardContent = { name, range, timezone: null, refreshSeconds: 60, variables: [], panels };
      await createBoard(board);
    } else await updateBoard(known._id, known.version, { panels });
    notify(`Added to “${known?.name ?? name}”.`);
    onClose();
  });
  return (
    <Dialog title="Add to board" onClose={onClose}>
      <WhenLoaded loaded={boards} what="boards">
        {(list) => (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void run();
            }}
          >
            <TextField label="Title of the panel" value={title} onInput={setTitle} maxLength={100} />
            <SelectField
              label="Board"
              value={chosen}
              onChange={setPicked}
              options={[
                ...list.map((board) => ({ value: board._id, label: board.name })),
                { value: NEW, label: "a new board" },
              ]}
            />
            {chosen === NEW && (
              <TextField label="Name of the board" value={name} onInput={setName} required maxLength={100} />
            )}
            <ErrorBox error={error} />
            <div class="actions end">
              <Button onClick={onClose}>Cancel</Button>
              <Button type="submit" look="primary" busy={running}>
                Add
              </Button>
            </div>
          </form>
        )}
      </WhenLoaded>
    </Dialog>
  );
}

/** The explorer's ranges as a board says them. */
const LENGTHS = {
  "15m": "15m",
  "1h": "1h",
  "6h": "6h",
  "24h": "24h",
  "7d": "7d",
  "30d": "30d",
  "90d": "90d",
  "1y": "52w",
} as const;
