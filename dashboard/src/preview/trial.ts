/** What a draft would have done: the outcomes of past cycles, and the server's timeline of them. */
import { tryVerdicts } from "../api/backtest";
import type { Aggregation, Value } from "../api/query";
import type { Outcome } from "../api/rules";
import { combined } from "../conditions/evaluate";
import type { Span } from "../explorer/range";
import { bodyOf, type KnownSource, type RuleDraft } from "../pages/rule-draft";
import { cyclesOf, instantOf, trialRanges, type Cycles, type TrialRange } from "./cycles";
import { readPoints, type Points } from "./points";
import { readSteps, STEPS_MAX, type Steps } from "./steps";
import { tasksOf, type Summed, type Task } from "./tasks";
import { ofAbsence, ofChange, ofGroups, ofMatching, ofPoints, visits } from "./windows";

/** Entries of all windows together; evaluating them takes a fraction of a second. Groups are put together anew. */
const VISITS_MAX = 20_000_000;
const GROUPED_VISITS_MAX = 5_000_000;

export type Trial =
  | { kind: "cannot"; reason: string; isOwn: boolean }
  | {
      kind: "done";
      range: TrialRange;
      cycles: number;
      /** When it would have fired, in milliseconds, ascending. */
      firings: number[];
      inconclusive: number;
    };

export async function runTrial(
  draft: RuleDraft,
  sources: KnownSource[],
  now: number,
  signal: AbortSignal,
): Promise<Trial> {
  const tasks = tasksOf(draft, sources);
  if (typeof tasks === "string") return { kind: "cannot", reason: tasks, isOwn: draft.kind === null };
  const intervalSeconds = Number(draft.intervalSeconds);
  const candidates = trialRanges(intervalSeconds)
    .map((range) => cyclesOf(range, intervalSeconds, now))
    .filter((cycles) => tasks.every((task) => isReadable(task, cycles)));
  const [longest] = candidates;
  if (longest === undefined) return tooMuch("its window is too long for how often it is evaluated");

  const points = new Map<Task, Points>();
  for (const task of tasks) {
    if (task.readSeconds === null) points.set(task, await readPoints(task, spanOf(task, longest), signal));
  }
  const cycles = candidates.find((one) =>
    [...points].every(
      ([task, { from, times }]) =>
        from <= spanOf(task, one).from && visits(times, one, task.windowSeconds) <= VISITS_MAX,
    ),
  );
  if (cycles === undefined) return tooMuch("its window holds too many points");

  const found = await Promise.all(tasks.map((task) => outcomesOf(task, cycles, points.get(task) ?? null, signal)));
  const inputs = draft.condition.inputs === "all" ? "all" : "any";
  const outcomes = Array.from({ length: cycles.count }, (_, at) => combined(inputs, found.map((each) => each[at]!)));
  const verdicts = outcomes.map((outcome, at) => ({
    at: instantOf(cycles.first + at * cycles.intervalMs),
    outcome,
  }));
  // A name that is still missing, or an address that is wrong, does not change what it would have done.
  const body = bodyOf({ ...draft, name: draft.name.trim() === "" ? "draft" : draft.name, webhookUrl: "" }, null, sources);
  const timeline = await tryVerdicts(body, verdicts, signal);
  return {
    kind: "done",
    range: cycles.range,
    cycles: cycles.count,
    firings: timeline.filter(({ triggered }) => triggered).map(({ at }) => Date.parse(at)),
    inconclusive: outcomes.filter((outcome) => outcome === "inconclusive").length,
  };
}

const tooMuch = (reason: string): Trial => ({ kind: "cannot", reason, isOwn: false });

/** All that the windows of a task see. */
const spanOf = ({ windowSeconds }: Task, { first, last }: Cycles): Span => ({
  from: first - windowSeconds * 1000,
  to: last,
});

function isReadable(task: Task, cycles: Cycles): boolean {
  if (task.readSeconds === null) return true;
  const { from, to } = spanOf(task, cycles);
  const stepMs = task.readSeconds * 1000;
  const inWindow = task.windowSeconds / task.readSeconds;
  const most = task.groups === null ? VISITS_MAX : GROUPED_VISITS_MAX;
  return (to - from) / stepMs <= STEPS_MAX && inWindow * cycles.count <= most;
}

async function outcomesOf(task: Task, cycles: Cycles, points: Points | null, signal: AbortSignal): Promise<Outcome[]> {
  if (points !== null) return ofPoints(task, points, cycles);
  const ask = (aggregations: Aggregation[], passing?: Record<string, Value>): Promise<Steps> => {
    const { bucketId, sourceId, field, dimensions, readSeconds } = task;
    const question = { bucketId, sourceId, field, dimensions, stepSeconds: readSeconds ?? 1, span: spanOf(task, cycles) };
    return readSteps({ ...question, aggregations, ...(passing === undefined ? {} : { passing }) }, signal);
  };
  if (task.groups !== null) return ofGroups(task, await ask(NEEDED[task.groups.aggregation]), cycles);
  switch (task.kind) {
    case "threshold":
    case "range": {
      if (task.parameters["match"] === "last") return ofMatching(task, await ask(["count", "last"]), null, cycles);
      const [all, passing] = await Promise.all([ask(["count"]), ask(["count"], passingOf(task))]);
      return ofMatching(task, all, passing, cycles);
    }
    case "change":
      return ofChange(task, await ask(["count", "first", "last", "min", "max"]), cycles);
    default:
      return ofAbsence(task, await ask(["count"]), cycles);
  }
}

/** What the groups of an aggregation are told from. */
const NEEDED: Record<Summed, Aggregation[]> = {
  avg: ["count", "sum"],
  sum: ["sum"],
  min: ["min"],
  max: ["max"],
  count: ["count"],
  first: ["first"],
  last: ["last"],
  range: ["min", "max"],
  delta: ["first", "last"],
};

/** Of a threshold the points that pass, of a range those inside. */
function passingOf({ kind, parameters }: Task): Record<string, Value> {
  if (kind === "range") return { gte: parameters["low"]!, lte: parameters["high"]! };
  return { [String(parameters["operator"])]: parameters["value"]! };
}
