import { expect, test } from "vitest";
import { byNumber, byText, pick } from "./listing";

const ITEMS = [
  { name: "Pump 10", at: 3 },
  { name: "pump 2", at: null },
  { name: "Tank", at: 7 },
];
const text = ({ name }: (typeof ITEMS)[number]) => name;
const names = (words: string, compare = byText(text)) => pick(ITEMS, words, { text }, { label: "", compare }).map(text);

test("every word must be there, in any case", () => {
  expect(names("PUMP 2")).toEqual(["pump 2"]);
  expect(names("  ")).toEqual(["pump 2", "Pump 10", "Tank"]);
  expect(names("pump tank")).toEqual([]);
});

test("numbers in names count, and what has no number stands last", () => {
  expect(names("pump")).toEqual(["pump 2", "Pump 10"]);
  expect(
    names(
      "",
      byNumber(({ at }) => at),
    ),
  ).toEqual(["Tank", "Pump 10", "pump 2"]);
});
