/** All boards: open, create, rename, copy, import, export, delete. */
import { useState } from "preact/hooks";
import {
  copyBoard,
  createBoard,
  deleteBoard,
  exportPath,
  importBoard,
  listBoards,
  updateBoard,
  type Board,
} from "../api/boards";
import { plural } from "../app/format";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { go } from "../app/route";
import { Button } from "../parts/button";
import { Confirm, Dialog } from "../parts/dialog";
import { ErrorBox, TextField, faultAt } from "../parts/forms";
import { Empty, Page, TableFrame, WhenLoaded } from "../parts/page";
import { Ago } from "../parts/show";

export function BoardsPage() {
  const boards = useLoad("boards", listBoards, ["boards"]);
  const [naming, setNaming] = useState<Board | "new" | null>(null);
  const [removing, setRemoving] = useState<Board | null>(null);
  const copying = useAction(async (board: Board) => {
    const copy = await copyBoard(board._id);
    notify(`Copied as “${copy.name}”.`);
    boards.reload();
  });
  const importing = useAction(async (file: File) => {
    const board = await importBoard(contentOf(await file.text()));
    go(`#/boards/${board._id}`);
  });
  return (
    <Page
      title="Boards"
      intro="Panels side by side, for those who watch."
      actions={
        <IfMay>
          <label class="button plain">
            <span>Import</span>
            <input
              type="file"
              class="visually-hidden"
              accept="application/json,.json"
              onChange={(event) => {
                const [file] = event.currentTarget.files ?? [];
                event.currentTarget.value = "";
                if (file !== undefined) void importing.run(file);
              }}
            />
          </label>
          <Button icon="plus" look="primary" onClick={() => setNaming("new")}>
            New board
          </Button>
        </IfMay>
      }
    >
      <ErrorBox error={importing.error ?? copying.error} />
      <WhenLoaded loaded={boards} what="boards">
        {(list) =>
          list.length === 0 ? (
            <Empty
              title="No boards yet"
              action={
                <IfMay>
                  <Button look="primary" icon="plus" onClick={() => setNaming("new")}>
                    Create the first
                  </Button>
                </IfMay>
              }
            >
              A board keeps the charts that you look at each day. “Add to board” in the explorer fills it.
            </Empty>
          ) : (
            <TableFrame label="Boards" stacked>
              <thead>
                <tr>
                  <th scope="col">Board</th>
                  <th scope="col">Panels</th>
                  <th scope="col">Changed</th>
                  <th scope="col">
                    <span class="visually-hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {list.map((board) => (
                  <tr key={board._id}>
                    <td>
                      <a class="name" href={`#/boards/${board._id}`}>
                        {board.name}
                      </a>
                    </td>
                    <td data-label="Panels">{plural(board.panels.length, "panel")}</td>
                    <td class="nowrap" data-label="Changed">
                      <Ago at={board.updatedAt} />
                    </td>
                    <td>
                      <div class="actions">
                        <IfMay>
                          <Button small label={`Rename ${board.name}`} onClick={() => setNaming(board)}>
                            Rename
                          </Button>
                          <Button small label={`Copy ${board.name}`} onClick={() => void copying.run(board)}>
                            Copy
                          </Button>
                        </IfMay>
                        <a
                          class="button plain small"
                          href={exportPath(board._id)}
                          download
                          aria-label={`Export ${board.name}`}
                        >
                          <span>Export</span>
                        </a>
                        <IfMay>
                          <Button
                            small
                            icon="trash"
                            label={`Delete ${board.name}`}
                            onClick={() => setRemoving(board)}
                          />
                        </IfMay>
                      </div>
                    </td>
                  </tr>
                ))}
              </tbody>
            </TableFrame>
          )
        }
      </WhenLoaded>
      {naming !== null && (
        <NameForm
          board={naming === "new" ? null : naming}
          onClose={() => setNaming(null)}
          onDone={(board) => {
            setNaming(null);
            if (naming === "new") go(`#/boards/${board._id}`);
            else boards.reload();
          }}
        />
      )}
      {removing !== null && (
        <Confirm
          title="Delete board"
          action="Delete board"
          onClose={() => setRemoving(null)}
          onConfirm={async () => {
            await deleteBoard(removing._id);
            notify("Board deleted.");
            setRemoving(null);
            boards.reload();
          }}
        >
          <p>
            “{removing.name}” goes with its links. What its panels show stays.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

/** What a file says; the server says what is wrong with it. */
function contentOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("the file is not JSON; import what a board's export has made");
  }
}

interface NameFormProps {
  /** Null for a new one. */
  board: Board | null;
  onDone: (board: Board) => void;
  onClose: () => void;
}

function NameForm({ board, onDone, onClose }: NameFormProps) {
  const [name, setName] = useState(board?.name ?? "");
  const { run, running, error } = useAction(async () => {
    const empty = { name, range: "24h", timezone: null, refreshSeconds: 60, variables: [], panels: [] };
    onDone(board === null ? await createBoard(empty) : await updateBoard(board._id, board.version, { name }));
  });
  return (
    <Dialog title={board === null ? "New board" : "Rename board"} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          required
          maxLength={100}
          fault={faultAt(error, "name")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "name"} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            {board === null ? "Create board" : "Rename"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
