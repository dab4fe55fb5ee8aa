/**
 * What the kinds are evaluated on. Each kind reads a window as a list of entries, oldest first: an entry stands for one
 * row, or sums up the rows of a step of time, so that a window of a million points is a few hundred entries. The kinds
 * mean what the evaluator (`evaluator/src/condition`) means; `tests/data/conditions.json` holds both to it.
 */
import type { Value } from "../api/query";
import type { Parameter } from "../api/rules";

export type Parameters = Readonly<Record<string, Parameter>>;

/** A point, or a group by the start of its step. */
export interface Row {
  /** Milliseconds. */
  at: number;
  value: Value;
}

/** Milliseconds, both ends inclusive. */
export interface Window {
  start: number;
  end: number;
}

/** The entries of a window within a longer list: from `first` up to `behind`, that not included. */
export interface Part<E> {
  entries: readonly E[];
  first: number;
  behind: number;
}

export const whole = <E>(entries: readonly E[]): Part<E> => ({ entries, first: 0, behind: entries.length });
