/** Dimensions and their values as a reader reads them. Pure. */
import type { DimensionCondition } from "./dimensions";

/** The empty string is a value, too. */
export const shownValue = (value: string): string => (value === "" ? "“”" : value);

/** `host=a, cpu=0`; of a group, null is said to be absent. */
export const labelsInWords = (labels: readonly (readonly [name: string, value: string | null])[]): string =>
  labels.map(([name, value]) => (value === null ? `no ${name}` : `${name}=${shownValue(value)}`)).join(", ");

/** `host is a or b`. */
export function conditionInWords({ name, operator, values }: DimensionCondition): string {
  const any = values.map(shownValue).join(" or ");
  switch (operator) {
    case "is":
      return `${name} is ${any}`;
    case "not":
      return `${name} is not ${any}`;
    case "absent":
      return `${name} is absent`;
    case "present":
      return `${name} is present`;
    case "matches":
      return `${name} matches ${any}`;
    case "notMatches":
      return `${name} does not match ${any}`;
  }
}
