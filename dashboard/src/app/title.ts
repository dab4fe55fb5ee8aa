/** The browser tab's title: what the page is, behind what must be seen from another tab. */
let page = "";
let mark = "";

export function setTitle(title: string): void {
  page = title;
  show();
}

/** `(2) firing`; empty when there is nothing to say. */
export function setTitleMark(text: string): void {
  mark = text;
  show();
}

function show(): void {
  document.title = [mark, page, "tidewatch"].filter((part) => part !== "").join(" · ");
}
