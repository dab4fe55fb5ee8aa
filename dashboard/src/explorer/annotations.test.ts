import { expect, test } from "vitest";
import { notesWithin, type PlacedNote } from "./annotations";

const note = (at: number, until: number | null): PlacedNote => ({
  id: `${at} ${until}`,
  at,
  until,
  text: "note",
  annotation: { _id: "", bucketId: "", dataSourceId: null, at: "", until: null, text: "note" },
});

test("notes that overlap the span are shown, both ends inclusive", () => {
  const notes = [note(5, null), note(10, null), note(5, 10), note(5, 9), note(20, null), note(21, 30), note(1, 99)];
  const shown = notesWithin(notes, { from: 10, to: 20 });
  expect(shown.map(({ id }) => id)).toEqual(["10 null", "5 10", "20 null", "1 99"]);
});
