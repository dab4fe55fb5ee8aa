/** Which series an input of a rule takes, where its source has dimensions. */
import { useMemo } from "preact/hooks";
import type { Source } from "../api/sources";
import { ConditionFields, useNamed } from "../explorer/dimension-fields";
import type { DimensionCondition } from "../explorer/dimensions";
import type { KnownSource } from "./rule-draft";

export interface InputSeriesProps {
  bucketId: string;
  source: KnownSource;
  conditions: DimensionCondition[];
  fault: string | null;
  onChange: (conditions: DimensionCondition[]) => void;
}

export function InputSeries({ bucketId, source, conditions, fault, onChange }: InputSeriesProps) {
  const { _id, dimensions = null } = source;
  const asked = useMemo(() => [{ _id, bucketId, dimensions } as Source], [_id, bucketId, dimensions]);
  const named = useNamed(asked) ?? [];
  if (named.length === 0 && conditions.length === 0) return null;
  return (
    <ConditionFields
      named={named}
      value={{ conditions, groups: [], top: "", least: false }}
      tried={fault !== null}
      onChange={(part) => onChange(part.conditions ?? conditions)}
    />
  );
}
