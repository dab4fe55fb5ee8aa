/** What a mutation has done, said in a corner and to screen readers. */
import { createStore, useStore } from "./store";

interface Notice {
  id: number;
  text: string;
}

/** Long enough to read two lines twice. */
const SHOWN_MS = 6000;

const notices = createStore<Notice[]>([]);
let lastId = 0;

export function notify(text: string): void {
  const notice = { id: ++lastId, text };
  notices.set([...notices.get().slice(-2), notice]);
  setTimeout(() => notices.set(notices.get().filter((other) => other !== notice)), SHOWN_MS);
}

export function Notices() {
  const shown = useStore(notices);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.map((notice) => (
        <p class="notice" key={notice.id}>
          {notice.text}
        </p>
      ))}
    </div>
  );
}
