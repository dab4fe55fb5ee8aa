/** Dimensions of a source as a form holds them. Pure. */
import type { Dimensions } from "../api/sources";

export interface DimensionsDraft {
  kind: "none" | "all" | "named";
  /** One a line. */
  names: string;
}

export const draftOfDimensions = (dimensions: Dimensions): DimensionsDraft => ({
  kind: dimensions === null ? "none" : dimensions === "all" ? "all" : "named",
  names: Array.isArray(dimensions) ? dimensions.join("\n") : "",
});

/** A name of `before` stays as it is; of what is typed, spaces at the ends are no part. */
export function dimensionsOf({ kind, names }: DimensionsDraft, before: Dimensions = null): Dimensions {
  if (kind !== "named") return kind === "none" ? null : "all";
  const known = Array.isArray(before) ? before : [];
  return names
    .split("\n")
    .map((line) => (known.includes(line) ? line : line.trim()))
    .filter((line) => line !== "");
}

export const isSameDimensions = (a: Dimensions, b: Dimensions): boolean => JSON.stringify(a) === JSON.stringify(b);

/** What a source is split by, in words. */
export function dimensionsInWords(dimensions: Dimensions): string {
  if (dimensions === null) return "none";
  return dimensions === "all" ? "all members of metadata" : dimensions.join(", ");
}
