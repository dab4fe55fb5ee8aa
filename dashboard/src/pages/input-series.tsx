/** Which series an input of a rule takes, and by what it groups them, where its source has dimensions. */
import { useMemo } from "preact/hooks";
import type { Source } from "../api/sources";
import { ConditionFields, NameFields, useNamed } from "../explorer/dimension-fields";
import type { DimensionCondition } from "../explorer/dimensions";
import type { KnownSource } from "./rule-draft";

export interface InputSeriesProps {
  bucketId: string;
  source: KnownSource;
  /** Null where they cannot be edited. */
  conditions: DimensionCondition[] | null;
  /** Null where rows are points, which have no groups. */
  groups: string[] | null;
  fault: string | null;
  onChange: (part: { conditions?: DimensionCondition[]; groups?: string[] }) => void;
}

export function InputSeries({ bucketId, source, conditions, groups, fault, onChange }: InputSeriesProps) {
  const { _id, dimensions = null } = source;
  const asked = useMemo(() => [{ _id, bucketId, dimensions } as Source], [_id, bucketId, dimensions]);
  const named = useNamed(asked) ?? [];
  return (
    <>
      {conditions !== null && (named.length > 0 || conditions.length > 0) && (
        <ConditionFields
          named={named}
          value={{ conditions, groups: [], top: "", least: false }}
          tried={fault !== null}
          onChange={(part) => onChange({ conditions: part.conditions ?? conditions })}
        />
      )}
      {groups !== null && (named.length > 0 || groups.length > 0) && (
        <NameFields
          legend="Rows for each value of"
          none="None: the series of the source have rows together."
          some="Several: each combination of their values has rows."
          named={named}
          groups={groups}
          onChange={(chosen) => onChange({ groups: chosen })}
        />
      )}
    </>
  );
}
