/** A long list: found by words, sorted, and shown a page at a time. Knows no resource. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { plural } from "../app/format";
import { SelectField, TextField } from "./forms";
import { Pager } from "./page";

export const PAGE_ROWS = 50;
/** Shorter lists are found through by eye. */
const BAR_FROM = 6;

export interface Order<T> {
  label: string;
  compare: (a: T, b: T) => number;
}

interface ListingOptions<T> {
  /** What is searched. */
  text: (item: T) => string;
  /** The first is how the list comes up. */
  orders: Order<T>[];
}

export interface Listing<T> {
  all: number;
  found: number;
  /** One page. */
  shown: T[];
  offset: number;
  words: string;
  order: string;
  orders: string[];
  search: (words: string) => void;
  sort: (order: string) => void;
  move: (offset: number) => void;
}

/** Items that have every word, in any case, in the order that is chosen. */
export function pick<T>(items: T[], words: string, { text }: Pick<ListingOptions<T>, "text">, order: Order<T>): T[] {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const found = items.filter((item) => {
    const whole = text(item).toLowerCase();
    return wanted.every((word) => whole.includes(word));
  });
  return found.sort(order.compare);
}

export const byText =
  <T,>(text: (item: T) => string) =>
  (a: T, b: T) =>
    text(a).localeCompare(text(b), "en", { numeric: true, sensitivity: "base" });

/** Greatest first; what has no number stands last. */
export const byNumber =
  <T,>(number: (item: T) => number | null) =>
  (a: T, b: T) =>
    (number(b) ?? -Infinity) === (number(a) ?? -Infinity) ? 0 : (number(b) ?? -Infinity) - (number(a) ?? -Infinity);

/** Latest first; what has no moment stands last. */
export const byMoment = <T,>(moment: (item: T) => string | null) =>
  byNumber((item: T) => {
    const at = moment(item);
    return at === null ? null : Date.parse(at);
  });

export function useListing<T>(items: T[], options: ListingOptions<T>): Listing<T> {
  const [words, setWords] = useState("");
  const [order, setOrder] = useState(options.orders[0]!.label);
  const [offset, setOffset] = useState(0);
  const chosen = options.orders.find(({ label }) => label === order) ?? options.orders[0]!;
  const found = pick(items, words, options, chosen);
  // The list may have become shorter than where its reader was.
  const start = offset < found.length ? offset : 0;
  return {
    all: items.length,
    found: found.length,
    shown: found.slice(start, start + PAGE_ROWS),
    offset: start,
    words,
    order,
    orders: options.orders.map(({ label }) => label),
    search: (text) => {
      setWords(text);
      setOffset(0);
    },
    sort: (label) => {
      setOrder(label);
      setOffset(0);
    },
    move: setOffset,
  };
}

interface ListedProps<T> {
  listing: Listing<T>;
  /** What an item is called. */
  one: string;
  label: string;
  /** Shows the items of the page. */
  children: ComponentChildren;
}

/** A list with what it is found through by above, and its pages below. */
export function Listed<T>({ listing, one, label, children }: ListedProps<T>) {
  return (
    <>
      <ListBar listing={listing} one={one} label={label} />
      {children}
      <Pager
        offset={listing.offset}
        limit={PAGE_ROWS}
        total={listing.found}
        onMove={listing.move}
        back="Previous"
        forward="Next"
      />
    </>
  );
}

/** Search and order; nothing above a short list. */
function ListBar<T>({ listing, one, label }: Omit<ListedProps<T>, "children">) {
  if (listing.all < BAR_FROM) return null;
  return (
    <div class="list-bar" role="search" aria-label={label}>
      <TextField
        label={`Search ${one}s`}
        labelHidden
        placeholder="Search"
        value={listing.words}
        onInput={listing.search}
        type="search"
      />
      <SelectField
        label={`Sort ${one}s by`}
        labelHidden
        value={listing.order}
        onChange={listing.sort}
        options={listing.orders}
      />
      <span class="hint" role="status">
        {listing.found === listing.all
          ? plural(listing.all, one)
          : `${plural(listing.found, one)} of ${listing.all.toLocaleString("en-GB")}`}
      </span>
    </div>
  );
}
