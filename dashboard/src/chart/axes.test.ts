import type uPlot from "uplot";
import { expect, test } from "vitest";
import type { Line } from "../explorer/series";
import { shortened, valueAxes, valueRange } from "./axes";

const CHART = {} as uPlot;

test.each([
  [0, 1],
  [-1e300, 1e300],
  [-1.7e308, 1.7e308],
  [1.7e308, 1.75e308],
])("a range from %s to %s has a height", (min, max) => {
  const [low, high] = valueRange(CHART, min, max);
  expect(Number.isFinite(high - low)).toBe(true);
  expect(high).toBeGreaterThan(low);
});

test("an axis has steps for whatever range, and each label is another one", () => {
  const line = { type: "number", unit: "kilowatt hours per day", step: null } as unknown as Line;
  const [axis] = valueAxes([line], { text: "", grid: "", tick: "", mark: "" }, "", 1);
  const steps = axis!.incrs as number[];
  expect(steps.some((step) => step > 1e299 && step < 1e301)).toBe(true);
  expect(steps).toContain(0.25);
  const labels = (axis!.values as uPlot.Axis.DynamicValues)(CHART, [1234567.2, 1234567.4, 1234567.6], 1, 0, 0.2);
  expect(labels).toEqual(["1234567.2", "1234567.4", "1234567.6 kilowat…"]);
});

test("a unit that fits stays whole", () => expect(shortened("µg/m³")).toBe("µg/m³"));
