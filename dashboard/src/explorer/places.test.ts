import { expect, test } from "vitest";
import { placesOf } from "./places";

const NONE = new Map<string, number>();
const ids = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `x host=${n}`, name: `host=${n}` }));

test("the same lines have the same colours, in whatever order they come", () => {
  const places = placesOf(ids(20), NONE);
  expect(placesOf(ids(20).toReversed(), NONE)).toEqual(places);
  expect(new Set(places.values()).size).toBe(20);
});

test("few lines have a colour of their own each, and no dash", () => {
  for (let count = 1; count <= 8; count++) {
    const places = [...placesOf(ids(count), NONE).values()];
    expect(Math.max(...places)).toBeLessThan(8);
    expect(new Set(places).size).toBe(count);
  }
});

test("a line keeps its colour while others come and go", () => {
  const before = placesOf(ids(10), NONE);
  const after = placesOf([{ id: "new", name: "new" }, ...ids(10).slice(3)], before);
  for (const { id } of ids(10).slice(3)) expect(after.get(id)).toBe(before.get(id));
  expect(new Set(after.values()).size).toBe(8);
});

test("a line has the same colour in another chart", () => {
  const place = (id: string) => placesOf([{ id, name: "host=a" }], NONE).get(id);
  expect(place("in the explorer")).toBe(place("in a panel"));
});
