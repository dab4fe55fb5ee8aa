/** Where a line breaks: a pause that is long for what is usual around it. Pure. */

/** A pause between points of this many usual intervals is a gap, not a slope. */
const GAP_INTERVALS = 5;
/** Intervals before and after a pause that say what is usual there: a source may change its pace. */
const POINT_NEIGHBOURS = 4;
const GROUP_NEIGHBOURS = 12;
/** Groups may lie this much further apart than usual: months differ by three days. */
const GROUP_STEPS = 1.5;
/** Of the intervals around, so many are no longer than what counts as usual: another pause near by does not count. */
const USUAL_SHARE = 0.92;

/** Whether something is missing right before the place of an index, for points at these times. */
export function pointGaps(times: number[]): (index: number) => boolean {
  return (index) => {
    const usual = usualOf(stepsAround(times, index, POINT_NEIGHBOURS)) ?? 0;
    return usual > 0 && stepTo(times, index) > usual * GAP_INTERVALS;
  };
}

/**
 * The same for groups of `stepMs`. A source that sends more rarely than the groups are long has no group between two
 * of its points; only a pause that is longer than its own interval is a gap.
 */
export function groupGaps(times: number[], stepMs: number): (index: number) => boolean {
  return (index) => {
    const step = stepTo(times, index);
    if (step <= stepMs * GROUP_STEPS) return false;
    return step > (usualOf(stepsAround(times, index, GROUP_NEIGHBOURS)) ?? stepMs) * GROUP_STEPS;
  };
}

function usualOf(steps: number[]): number | undefined {
  return steps.sort((a, b) => a - b)[Math.floor((steps.length - 1) * USUAL_SHARE)];
}

const stepTo = (times: number[], index: number): number => times[index]! - times[index - 1]!;

/** At an end of the line, those that one side lacks are taken from the other. */
function stepsAround(times: number[], index: number, neighbours: number): number[] {
  const steps: number[] = [];
  const first = Math.max(1, Math.min(index - neighbours, times.length - 1 - 2 * neighbours));
  const last = Math.min(times.length - 1, first + 2 * neighbours);
  for (let near = first; near <= last; near++) if (near !== index) steps.push(stepTo(times, near));
  return steps;
}
