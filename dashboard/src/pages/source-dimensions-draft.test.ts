import { expect, test } from "vitest";
import { dimensionsInWords, dimensionsOf, draftOfDimensions } from "./source-dimensions-draft";

test("what a source has comes back as it was", () => {
  for (const dimensions of [null, "all" as const, ["host", " odd ", "a.b"]])
    expect(dimensionsOf(draftOfDimensions(dimensions), dimensions)).toEqual(dimensions);
});

test("names are typed one a line; empty lines and spaces at their ends are no part of them", () => {
  const draft = { kind: "named" as const, names: " host \n\ncpu core\r\n" };
  expect(dimensionsOf(draft)).toEqual(["host", "cpu core"]);
});

test("dimensions in words", () => {
  expect([null, "all" as const, ["host", "cpu"]].map(dimensionsInWords)).toEqual([
    "none",
    "all members of metadata",
    "host, cpu",
  ]);
});
