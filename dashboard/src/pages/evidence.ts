/** What an evaluator gives as the reason of a verdict, in one line. Pure: evidence may be any JSON. */
import { formatAny } from "../app/format";

const CHARS_MAX = 120;

/** `current value 7.82, threshold 7.1, operator gt`. */
export const evidenceWords = (evidence: unknown): string =>
  cut(isObject(evidence) && Object.keys(evidence).length > 0 ? membersOf(evidence) : valueWords(evidence));

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const membersOf = (object: Record<string, unknown>): string =>
  Object.entries(object)
    .map(([name, value]) => `${spaced(name)} ${valueWords(value)}`)
    .join(", ");

function valueWords(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(valueWords).join(", ")}]`;
  return isObject(value) ? `{${membersOf(value)}}` : formatAny(value);
}

/** `currentValue` is `current value`; names of others stay as they are. */
const spaced = (name: string): string =>
  /^[a-z]+([A-Z][a-z0-9]*)+$/.test(name) ? name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`) : name;

/** By characters, none of which is cut in halves. */
function cut(text: string): string {
  const characters = [...text];
  return characters.length <= CHARS_MAX ? text : `${characters.slice(0, CHARS_MAX - 1).join("")}…`;
}
