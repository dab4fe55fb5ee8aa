/** A moment, typed as a time of the reader's zone or as `now+2h`. */
import { formatTime, zoneName } from "../app/format";
import { useNow } from "../app/load";
import { momentOf, type Edge } from "../app/moment";
import { useZone, type Zone } from "../app/preferences";
import { TextField, type TextProps } from "./forms";

type MomentProps = Omit<TextProps, "type" | "inputMode" | "mono"> & {
  /** Which end of a range it is: the begin or the end of a day that is typed alone. */
  edge: Edge;
  /** A relative time that makes sense here, such as `now+2h`. */
  example: string;
};

const SHOWN_AGAIN_MS = 10_000;

/** What is typed in a `MomentField`; null where it is no moment. */
export const typedMoment = (text: string, zone: Zone, edge: Edge): number | null =>
  momentOf(text.trim(), zone, Date.now(), edge);

/** What is no moment is said at once; which one it is, under the field. */
export function MomentField({ edge, example, hint, fault, ...rest }: MomentProps) {
  const zone = useZone();
  useNow(SHOWN_AGAIN_MS);
  const isEmpty = rest.value.trim() === "";
  const at = isEmpty ? null : typedMoment(rest.value, zone, edge);
  const meant = at === null ? hint : `${formatTime(Math.floor(at / 1000) * 1000, zone)} ${zoneName(zone, at)}`;
  const odd = !isEmpty && at === null;
  return (
    <TextField
      {...rest}
      mono
      hint={meant ?? `Such as ${example} or 2026-01-31 14:30`}
      fault={odd ? `must be a time such as ${example} or 2026-01-31 14:30, not ${rest.value.trim()}` : fault}
    />
  );
}
