/** Says that a form holds what was typed before, and gives it up. */
import type { Draft } from "../app/draft";
import { Button } from "./button";

export function Restored<T>({ draft }: { draft: Draft<T> }) {
  if (!draft.restored) return null;
  return (
    <div class="notice-box" role="status">
      <p>Your earlier input has been restored. It is not saved yet.</p>
      <Button small onClick={draft.reset}>
        Start anew
      </Button>
    </div>
  );
}
