/** What a draft's inputs need to be tried out, or why they cannot be from a few queries. Pure. */
import type { Parameters } from "../conditions/entry";
import type { Matcher } from "../api/query";
import { matchersOf } from "../explorer/dimensions";
import { emptyInput, typeOf, type InputDraft, type KnownSource, type RuleDraft } from "../pages/rule-draft";
import { stepLength } from "../pages/rule-groups";
import { parametersOf, type Kind } from "../pages/rule-kinds";
import { commonStep } from "./cycles";

/** Aggregations of a step that can be told from those of the shorter steps in it. */
export const SUMMED = ["avg", "sum", "min", "max", "count", "first", "last", "range", "delta"] as const;
export type Summed = (typeof SUMMED)[number];

export interface Task {
  bucketId: string;
  sourceId: string;
  field: string;
  /** Which series it takes; absent: all. */
  dimensions?: Record<string, Matcher>;
  kind: Kind;
  parameters: Parameters;
  windowSeconds: number;
  /** Null of points. */
  groups: { aggregation: Summed; stepSeconds: number } | null;
  /** Of the steps that are read; null where the points themselves are. */
  readSeconds: number | null;
}

/** A text says why it cannot be tried out. */
export function tasksOf(draft: RuleDraft, sources: KnownSource[]): Task[] | string {
  const { kind, condition } = draft;
  if (kind === null) return "your own evaluator decides";
  const type = typeOf(draft, draft.inputs[0] ?? emptyInput(), sources);
  const parameters = parametersOf(kind, condition, type);
  const tasks: Task[] = [];
  for (const input of draft.inputs) {
    const task = taskOf(draft, input, kind, parameters);
    if (typeof task === "string") return task;
    tasks.push(task);
  }
  return tasks;
}

function taskOf(draft: RuleDraft, input: InputDraft, kind: Kind, parameters: Parameters): Task | string {
  const windowSeconds = Number(input.windowSeconds.trim() === "" ? draft.windowSeconds : input.windowSeconds);
  const lengths = [Number(draft.intervalSeconds), windowSeconds];
  const [aggregation, step] = input.grouping.split(" ");
  let groups: Task["groups"] = null;
  const dimensions = input.kept.dimensions ?? matchersOf(input.conditions ?? []);
  if (input.kept.timezone !== undefined) return `its steps go by the clock of ${input.kept.timezone}`;
  if (step !== undefined) {
    if ((input.groups ?? []).length > 0) return "it has values for each group of series";
    const summed = SUMMED.find((name) => name === aggregation);
    const stepSeconds = stepLength(step);
    if (input.kept.fill !== undefined) return "steps without values are filled";
    if (kind === "absence") return "silence within groups is known to the evaluator alone";
    if (summed === undefined) return `${aggregation} by ${step} needs every point of each window`;
    if (stepSeconds === null) return `the length of a step by ${step} changes`;
    groups = { aggregation: summed, stepSeconds };
    lengths.push(stepSeconds);
  }
  const gap = parameters["maxGapSeconds"];
  if (kind === "absence" && gap !== undefined) lengths.push(Number(gap));
  if (!lengths.every(Number.isInteger)) return "its times are not whole seconds";
  return {
    ...{ bucketId: draft.bucketId, sourceId: input.sourceId === "" ? draft.sourceId : input.sourceId },
    ...(Object.keys(dimensions).length === 0 ? {} : { dimensions }),
    ...{ field: input.field, kind, parameters, windowSeconds, groups },
    readSeconds: kind === "zscore" && groups === null ? null : commonStep(lengths),
  };
}
