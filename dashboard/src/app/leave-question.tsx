/** Asked when somebody leaves a form with changes in it. */
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { leaving } from "./route";
import { useStore } from "./store";

export function LeaveQuestion() {
  const asked = useStore(leaving);
  if (asked === null) return null;
  const stay = () => leaving.set(null);
  return (
    <Dialog title="Leave without saving?" onClose={stay}>
      <p>Your changes on this page have not been saved.</p>
      <div class="actions end">
        <Button onClick={stay}>Stay here</Button>
        <Button look="danger" onClick={asked.leave}>
          Leave and lose it
        </Button>
      </div>
    </Dialog>
  );
}
