/** Line colours that are told apart with every kind of colour vision, on light and on dark; dashes beyond them. */

const LIGHT = ["#0b7a75", "#c8500a", "#2463b4", "#a63d82", "#7d6200", "#5a4fcf", "#2b3a47", "#4d7c0f"];
const DARK = ["#3cc4b8", "#ff9a52", "#6ab0f7", "#ea8fca", "#e3c24a", "#aaa2ff", "#cfd8e1", "#a3d977"];
const DASHES: (number[] | undefined)[] = [undefined, [8, 4], [2, 3]];

export interface LineLook {
  stroke: string;
  band: string;
  /** The band's own outline: a spike of one group is a hair's breadth, and must still be seen. */
  edge: string;
  dash: number[] | undefined;
}

/** `isBefore`: what stood there before has the line's colour, fainter and dotted. */
export function lookOf(index: number, theme: "light" | "dark", isBefore = false): LineLook {
  const colours = theme === "dark" ? DARK : LIGHT;
  const stroke = colours[index % colours.length]!;
  // Hex with alpha: strong enough to see a spike, light enough to see two bands cross.
  const band = `${stroke}${theme === "dark" ? "3d" : "33"}`;
  const edge = `${stroke}73`;
  if (isBefore) return { stroke: `${stroke}b3`, band, edge, dash: [3, 4] };
  return { stroke, band, edge, dash: DASHES[Math.floor(index / colours.length) % DASHES.length] };
}
