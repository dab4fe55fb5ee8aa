/** `change`: the difference of the window's last number from a reference: its first, least or greatest. */
import type { Value } from "../api/query";
import type { Outcome } from "../api/rules";
import type { Parameters, Part } from "./entry";

export interface Course {
  count: number;
  first: number;
  last: number;
  least: number;
  greatest: number;
}

export const courseOf = (value: Value): Course | null =>
  typeof value === "number" ? { count: 1, first: value, last: value, least: value, greatest: value } : null;

export function change(parameters: Parameters, { entries, first, behind }: Part<Course>): Outcome {
  let count = 0;
  let [start, last, least, greatest] = [NaN, NaN, Infinity, -Infinity];
  for (let index = first; index < behind; index++) {
    const course = entries[index]!;
    if (course.count === 0) continue;
    if (count === 0) start = course.first;
    count += course.count;
    last = course.last;
    if (course.least < least) least = course.least;
    if (course.greatest > greatest) greatest = course.greatest;
  }
  // One number alone shows no change.
  if (count < 2) return "inconclusive";
  const reference = { min: least, max: greatest }[String(parameters["from"])] ?? start;
  const difference = last - reference;
  const by = Number(parameters["by"]);
  let amount = difference;
  if (parameters["percent"] === true && difference !== 0) {
    // There are no percent of a reference of 0.
    if (reference === 0) return "inconclusive";
    amount = (difference / Math.abs(reference)) * 100;
  }
  switch (parameters["direction"]) {
    case "increase":
      return amount >= by ? "met" : "not_met";
    case "decrease":
      return amount <= -by ? "met" : "not_met";
    default:
      return Math.abs(amount) >= by ? "met" : "not_met";
  }
}
