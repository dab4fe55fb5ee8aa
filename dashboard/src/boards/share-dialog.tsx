/** Links to a board: which there are, a new one, and the end of one. */
import { useState } from "preact/hooks";
import { deleteShare, listShares, shareBoard, type Board, type NewShare } from "../api/boards";
import { useAction, useLoad } from "../app/load";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { ErrorBox, SelectField } from "../parts/forms";
import { SecretOnce, Time } from "../parts/show";
import { WhenLoaded } from "../parts/page";

const DAYS = ["1", "7", "30", "90", "366"];
const DAY_MS = 86_400_000;
/** The server's clock may be a little behind this one. */
const MARGIN_MS = 60_000;

export function ShareDialog({ board, onClose }: { board: Board; onClose: () => void }) {
  const shares = useLoad(`shares ${board._id}`, (signal) => listShares(board._id, signal));
  const [days, setDays] = useState("30");
  const [made, setMade] = useState<NewShare | null>(null);
  const making = useAction(async () => {
    const end = new Date(Date.now() + Number(days) * DAY_MS - MARGIN_MS).toISOString();
    setMade(await shareBoard(board._id, end));
    shares.reload();
  });
  const ending = useAction(async (id: string) => {
    await deleteShare(board._id, id);
    shares.reload();
  });
  return (
    <Dialog title="Share the board" onClose={onClose} wide>
      <p>
        Whoever has a link sees this board and what its panels show, without a log-in, and nothing else. Variables have
        their defaults there.
      </p>
      {made === null ? (
        <form
          class="field-row"
          onSubmit={(event) => {
            event.preventDefault();
            void making.run();
          }}
        >
          <SelectField
            label="The link works for"
            value={days}
            onChange={setDays}
            options={DAYS.map((value) => ({ value, label: value === "1" ? "1 day" : `${value} days` }))}
          />
          <Button type="submit" look="primary" busy={making.running}>
            Create a link
          </Button>
        </form>
      ) : (
        <SecretOnce what="link" value={new URL(`#/shared/${made.token}`, location.href).href} onCopied={() => undefined} />
      )}
      <ErrorBox error={making.error ?? ending.error} />
      <WhenLoaded loaded={shares} what="links">
        {(list) =>
          list.length === 0 ? (
            <p class="hint">There are no links to this board.</p>
          ) : (
            <ul class="share-list">
              {list.map((share) => (
                <li key={share._id}>
                  <span>
                    Made <Time at={share.createdAt} />, works until <Time at={share.expiresAt} />
                  </span>
                  <Button
                    small
                    label={`Remove the link that works until ${share.expiresAt}`}
                    onClick={() => void ending.run(share._id)}
                  >
                    Remove
                  </Button>
                </li>
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </Dialog>
  );
}
