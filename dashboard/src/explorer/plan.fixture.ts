import { UNSPLIT } from "./dimensions";
import type { Plan } from "./plan";
import { UNREFINED } from "./refinement";

/** Of no source, for tests that fill in what they are about. */
export const PLAN: Plan = {
  kind: "auto",
  groupBy: null,
  aggregation: "avg",
  compare: null,
  maxPoints: 1000,
  timezone: null,
  buckets: [],
  coarsenedFrom: null,
  leftOut: [],
  refinement: UNREFINED,
  dimensions: UNSPLIT,
  names: new Map(),
  unmatched: [],
};
