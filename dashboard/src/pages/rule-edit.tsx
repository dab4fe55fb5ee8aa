/** A rule, new or changed. */
import { useState } from "preact/hooks";
import { listBuckets, type Bucket } from "../api/buckets";
import { changeRule, createRule, getRule, type Rule } from "../api/rules";
import { listSources } from "../api/sources";
import { ApiError } from "../api/client";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { go, useRoute } from "../app/route";
import { Button, LinkButton } from "../parts/button";
import { CheckField, ErrorBox, SelectField, TextField, faultAt } from "../parts/forms";
import { Empty, Page, WhenLoaded } from "../parts/page";
import { EvaluationFields } from "./evaluation-fields";
import { bodyOf, draftOf, newDraft, type RuleDraft } from "./rule-draft";

const TRAIL = [{ href: "#/rules", label: "Alert rules" }];

export function NewRulePage() {
  const { search } = useRoute();
  const buckets = useLoad("buckets", listBuckets);
  return (
    <Page title="New rule" trail={TRAIL} intro="Say in words what is wrong, and how it is to be judged.">
      <WhenLoaded loaded={buckets} what="buckets">
        {(list) =>
          list.length === 0 ? (
            <Empty
              title="A rule needs a source"
              action={
                <LinkButton href="#/" look="primary">
                  Show me how to start
                </LinkButton>
              }
            >
              There is no bucket yet.
            </Empty>
          ) : (
            <RuleForm
              rule={null}
              buckets={list}
              start={newDraft(search.get("bucket") ?? list[0]!._id, search.get("source") ?? "")}
            />
          )
        }
      </WhenLoaded>
    </Page>
  );
}

export function EditRulePage({ id }: { id: string }) {
  const rule = useLoad(`rule ${id}`, (signal) => getRule(id, signal));
  return (
    <Page
      title="Edit rule"
      trail={[...TRAIL, { href: `#/rules/${id}`, label: rule.data?.name ?? "Rule" }]}
      intro="Its state and timers stay: a firing rule does not fire again."
    >
      <WhenLoaded loaded={rule} what="rule">
        {(data) => <RuleForm rule={data} buckets={[]} start={draftOf(data)} />}
      </WhenLoaded>
    </Page>
  );
}

const AT_FIELDS = ["name", "naturalLanguageQuery", "condition", "webhookUrl", "bucketId", "dataSourceId"];
/** Members of the block that have a field of their own in the editor. */
const AT_EVALUATION =
  /^evaluation\.(kind|intervalSeconds|windowSeconds|dwellSeconds|inputs(\.\d+\.(key|field|dataSourceId|aggregation|groupBy|windowSeconds))?)$/;

function RuleForm({ rule, buckets, start }: { rule: Rule | null; buckets: Bucket[]; start: RuleDraft }) {
  const [draft, setDraft] = useState(start);
  const change = (part: Partial<RuleDraft>) => setDraft((before) => ({ ...before, ...part }));
  const sources = useLoad(`sources ${draft.bucketId}`, (signal) => listSources(draft.bucketId, signal));
  const list = sources.data ?? [];
  // The first source of the bucket stands in until one is chosen.
  const sourceId = draft.sourceId !== "" ? draft.sourceId : (list[0]?._id ?? "");
  const shown = { ...draft, sourceId };
  const { run, running, error } = useAction(async () => {
    const body = bodyOf(shown, rule);
    const saved = rule === null ? await createRule(body) : await changeRule(rule._id, body);
    notify(rule === null ? `Rule “${saved.name}” created.` : `Rule “${saved.name}” saved.`);
    go(`#/rules/${saved._id}`);
  });
  const parameters = new Set(draft.parameters.map((parameter) => `evaluation.parameters.${parameter.name.trim()}`));
  const shownAt = (at: string) =>
    AT_FIELDS.includes(at) || (draft.evaluated && (AT_EVALUATION.test(at) || parameters.has(at)));
  const fields = Object.entries(list.find((source) => source._id === sourceId)?.schema ?? {});
  const example = fields.find(([, { type }]) => type === "number");
  // Without a block the server must understand the text; then its word is about the text, wherever the path points.
  const textFault = faultAt(error, "naturalLanguageQuery") ?? faultAt(error, "condition");
  return (
    <form
      class="card form"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <div class="form-grid">
        {rule === null && (
          <SelectField
            label="Bucket"
            value={draft.bucketId}
            onChange={(bucketId) =>
              change({
                bucketId,
                sourceId: "",
                inputs: draft.inputs.map((input) => ({ ...input, sourceId: "", field: "" })),
              })
            }
            options={buckets.map((bucket) => ({ value: bucket._id, label: bucket.name }))}
            fault={faultAt(error, "bucketId")}
          />
        )}
        {rule === null && (
          <SelectField
            label="Source"
            value={sourceId}
            onChange={(chosen) => change({ sourceId: chosen })}
            options={
              list.length === 0
                ? [{ value: "", label: sources.loading ? "…" : "no sources in this bucket" }]
                : list.map((source) => ({ value: source._id, label: source.name }))
            }
            fault={faultAt(error, "dataSourceId")}
          />
        )}
        <TextField
          label="Name"
          class="span"
          value={draft.name}
          onInput={(name) => change({ name })}
          required
          maxLength={200}
          fault={faultAt(error, "name")}
        />
        <TextField
          label="Condition, in words"
          class="span"
          value={draft.text}
          onInput={(text) => change({ text })}
          required
          maxLength={1000}
          placeholder={
            example === undefined
              ? "temperature exceeds 30"
              : `${example[0]} exceeds 30${example[1].unit ? ` ${example[1].unit}` : ""}`
          }
          hint={
            fields.length === 0 ? (
              "A field of the source, and what must not be"
            ) : (
              <>
                Fields: <span class="mono">{fields.map(([name]) => name).join(", ")}</span>
              </>
            )
          }
          fault={textFault}
        />
        <TextField
          label="Own URL"
          class="span"
          type="url"
          value={draft.webhookUrl}
          onInput={(webhookUrl) => change({ webhookUrl })}
          placeholder="https://…"
          hint="May stay empty: the organization's webhooks hear of triggers anyway"
          fault={faultAt(error, "webhookUrl")}
        />
      </div>
      <CheckField
        label="Judged by an evaluator"
        hint="Without this block the rule is kept, and never judged."
        checked={draft.evaluated}
        onChange={(evaluated) => change({ evaluated })}
      />
      {draft.evaluated && <EvaluationFields draft={shown} sources={list} error={error} onChange={change} />}
      <ErrorBox error={error} shownAt={error instanceof ApiError ? shownAt : undefined} />
      <div class="actions end">
        <LinkButton href={rule === null ? "#/rules" : `#/rules/${rule._id}`}>Cancel</LinkButton>
        <Button type="submit" look="primary" busy={running}>
          {rule === null ? "Create rule" : "Save"}
        </Button>
      </div>
    </form>
  );
}
