/** `zscore`: the newest number compared with the mean and the standard deviation of the numbers before it. */
import type { Outcome } from "../api/rules";
import type { Parameters, Part } from "./entry";

const LIMIT_DEFAULT = 3;
const POINTS_MIN_DEFAULT = 30;

export function zscore(parameters: Parameters, { entries, first, behind }: Part<number>): Outcome {
  const others = behind - first - 1;
  if (others < 0 || others < Number(parameters["minPoints"] ?? POINTS_MIN_DEFAULT)) return "inconclusive";
  // Mean and sum of squared deviations, one number after the other (Welford 1962), as the evaluator does.
  let [count, mean, squares] = [0, 0, 0];
  for (let index = first; index < behind - 1; index++) {
    const number = entries[index]!;
    count += 1;
    const before = number - mean;
    mean += before / count;
    squares += before * (number - mean);
  }
  const deviation = Math.sqrt(squares / (count - 1));
  if (!Number.isFinite(deviation) || !Number.isFinite(mean)) return "inconclusive";
  const distance = entries[behind - 1]! - mean;
  // Of numbers that do not vary, any other number is an outlier.
  const score = distance === 0 ? 0 : distance / deviation;
  return Math.abs(score) > Number(parameters["limit"] ?? LIMIT_DEFAULT) ? "met" : "not_met";
}
