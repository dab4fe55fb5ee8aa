/** By what a source's points are split into series, and what becomes of points that are sent again. */
import type { Duplicates, Source } from "../api/sources";
import { SelectField, TextAreaField, faultAt } from "../parts/forms";
import type { DimensionsDraft } from "./source-dimensions-draft";

interface Props {
  /** Null of a new one. */
  source: Source | null;
  draft: DimensionsDraft;
  duplicates: Duplicates;
  error: Error | null;
  onDraft: (draft: DimensionsDraft) => void;
  onDuplicates: (duplicates: Duplicates) => void;
}

const KINDS: { value: DimensionsDraft["kind"]; label: string }[] = [
  { value: "none", label: "none: the source is one series" },
  { value: "all", label: "all members of metadata" },
  { value: "named", label: "members of these names" },
];

export function DimensionsFields({ source, draft, duplicates, error, onDraft, onDuplicates }: Props) {
  const fixed = source !== null && source.stats.totalDataPoints > 0;
  const faults = [faultAt(error, "dimensions")];
  for (let index = 0; index < draft.names.split("\n").length; index++) faults.push(faultAt(error, `dimensions.${index}`));
  const fault = faults.filter((one) => one !== null).join("; ");
  return (
    <div class="form-grid">
      <SelectField
        label="Dimensions"
        value={draft.kind}
        onChange={(kind) => onDraft({ ...draft, kind: kind as DimensionsDraft["kind"] })}
        options={KINDS}
        disabled={fixed}
        hint={
          fixed
            ? "They can be changed only while the source has no points. Create another source for other dimensions."
            : "Points are split into series by them: filter, group and colour by host, line or site. They can be changed only while the source has no points."
        }
        fault={draft.kind === "named" || fault === "" ? null : fault}
      />
      {draft.kind === "named" && (
        <TextAreaField
          label="Names of dimensions"
          value={draft.names}
          onInput={(names) => onDraft({ ...draft, names })}
          rows={3}
          maxLength={5000}
          disabled={fixed}
          hint="One a line, 32 at most, such as host"
          fault={fault === "" ? null : fault}
        />
      )}
      <SelectField
        label="A point that is sent again"
        value={duplicates}
        onChange={(value) => onDuplicates(value as Duplicates)}
        options={[
          { value: "keep", label: "is another point" },
          { value: "skip", label: "is skipped" },
        ]}
        hint="Again: the same field of the same series at the same time. Skipping makes it safe to repeat what may have failed."
        fault={faultAt(error, "duplicates")}
      />
    </div>
  );
}
