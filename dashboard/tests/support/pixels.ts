/** The pixels of a chart: tests find a line by its colour. */
import type { Page } from "@playwright/test";

export interface Pixels {
  pixels: number;
  /** Pixels in the upper half of the plotting area. */
  upper: number;
  /** The leftmost and rightmost columns with the colour: 0 is the left edge of the plotting area, 1 the right one. */
  from: number;
  to: number;
}

/** The colours of the first lines in the light theme. */
export const LINE_COLOURS = ["#0b7a75", "#c8500a", "#2463b4"] as const;

export function measurePixels(page: Page, colour: string = LINE_COLOURS[0]): Promise<Pixels> {
  return page.evaluate((hex) => {
    const canvas = document.querySelector<HTMLCanvasElement>(".plot canvas");
    const over = document.querySelector<HTMLElement>(".plot .u-over");
    if (canvas === null || over === null) return { pixels: 0, upper: 0, from: 1, to: 0 };
    const ratio = canvas.width / canvas.clientWidth;
    const [left, top] = [over.offsetLeft * ratio, over.offsetTop * ratio];
    const [width, height] = [over.clientWidth * ratio, over.clientHeight * ratio];
    const { data } = canvas.getContext("2d")!.getImageData(left, top, width, height);
    const wanted = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
    const ink = { pixels: 0, upper: 0, from: 1, to: 0 };
    for (let pixel = 0; pixel < width * height; pixel++) {
      // The middle of a stroke is opaque; its edges are blended with the background.
      if (data[pixel * 4 + 3]! < 200) continue;
      if (wanted.some((part, at) => Math.abs(part - data[pixel * 4 + at]!) > 24)) continue;
      const x = (pixel % width) / width;
      ink.pixels++;
      if (pixel < (width * height) / 2) ink.upper++;
      ink.from = Math.min(ink.from, x);
      ink.to = Math.max(ink.to, x);
    }
    return ink;
  }, colour);
}
