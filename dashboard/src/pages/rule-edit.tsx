/** A rule, new or changed. */
import { listBuckets, type Bucket } from "../api/buckets";
import { changeRule, createRule, getRule, type Rule } from "../api/rules";
import { listSources, type Source } from "../api/sources";
import { ApiError } from "../api/client";
import { useDraft } from "../app/draft";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { go, useRoute } from "../app/route";
import { Button, LinkButton } from "../parts/button";
import { Restored } from "../parts/restored";
import { ErrorBox, SelectField, TextField, faultAt } from "../parts/forms";
import { LazyRulePanel } from "../preview/lazy";
import { Empty, LoadError, Page, WhenLoaded } from "../parts/page";
import { ConditionFields, KindChoice } from "./condition-fields";
import { Inputs, Times } from "./input-fields";
import { bodyOf, draftOf, emptyInput, newDraft, type RuleDraft } from "./rule-draft";
import { doubtsOf, faultsOf } from "./rule-faults";
import { wordsOf } from "./rule-words";

const TRAIL = [{ href: "#/rules", label: "Alert rules" }];

export function NewRulePage() {
  const { search } = useRoute();
  const buckets = useLoad("buckets", listBuckets);
  return (
    <Page title="New rule" trail={TRAIL} intro="Define the condition and how it is evaluated. The description is generated from it.">
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
      intro="State and timers are kept: a rule that is firing does not fire again."
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
  /^evaluation\.(kind|intervalSeconds|windowSeconds|dwellSeconds|parameters\..*|inputs(\.\d+\.(key|field|dataSourceId|aggregation|groupBy|windowSeconds))?)$/;
const shownAt = (at: string) => AT_FIELDS.includes(at) || AT_EVALUATION.test(at);

/** What this page has found wrong, without what has been put right since; what the server said stays. */
function stillWrong(refused: Error | null, draft: RuleDraft, sources: Source[]): Error | null {
  if (!(refused instanceof ApiError) || refused.status !== 0 || refused.faults.length === 0) return refused;
  const now = faultsOf(draft, sources).map((fault) => JSON.stringify(fault));
  const faults = refused.faults.filter((fault) => now.includes(JSON.stringify(fault)));
  return faults.length === 0 ? null : new ApiError(refused.status, refused.kind, refused.message, faults);
}

function RuleForm({ rule, buckets, start }: { rule: Rule | null; buckets: Bucket[]; start: RuleDraft }) {
  const typed = useDraft(rule === null ? `rule in ${start.bucketId} ${start.sourceId}` : `rule ${rule._id}`, start);
  const { value: draft, change } = typed;
  const loaded = useLoad(`sources ${draft.bucketId}`, (signal) => listSources(draft.bucketId, signal), ["sources"]);
  const sources = loaded.data ?? [];
  // The first source of the bucket stands in until one is chosen.
  const sourceId = draft.sourceId !== "" ? draft.sourceId : (sources[0]?._id ?? "");
  const shown = { ...draft, sourceId };
  const { run, running, error: refused } = useAction(async () => {
    const faults = faultsOf(shown, sources);
    if (faults.length > 0) throw new ApiError(0, "Not a rule yet", "the rule cannot be saved yet", faults);
    const body = bodyOf(shown, rule, sources);
    const saved = rule === null ? await createRule(body) : await changeRule(rule._id, body);
    typed.done();
    notify(rule === null ? `Rule “${saved.name}” created.` : `Rule “${saved.name}” saved.`);
    go(`#/rules/${saved._id}`);
  });
  const error = stillWrong(refused, shown, sources);
  const doubts = doubtsOf(shown, sources);
  const fields = { draft: shown, sources, error, onChange: change };
  return (
    <form
      class="card form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (loaded.data !== null) void run();
      }}
    >
      <Restored draft={typed} />
      {loaded.error !== null && <LoadError error={loaded.error} what="sources" onRetry={loaded.reload} />}
      {draft.unknown.length > 0 && (
        <p class="warn-box" role="status">
          <span>
            The reference evaluator cannot evaluate this rule as it is: its kind has no parameter{" "}
            <code>{draft.unknown.join(", ")}</code>. Saving leaves it out.
          </span>
        </p>
      )}
      <div class="form-grid">
        {rule === null && (
          <SelectField
            label="Bucket"
            value={draft.bucketId}
            onChange={(bucketId) => change({ bucketId, sourceId: "", inputs: [emptyInput()] })}
            options={buckets.map((bucket) => ({ value: bucket._id, label: bucket.name }))}
            fault={faultAt(error, "bucketId")}
          />
        )}
        {rule === null && (
          <SelectField
            label="Source"
            value={sourceId}
            onChange={(chosen) => change({ sourceId: chosen, inputs: [emptyInput()] })}
            options={
              sources.length === 0
                ? [{ value: "", label: loaded.loading ? "…" : "no sources in this bucket" }]
                : sources.map((source) => ({ value: source._id, label: source.name }))
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
      </div>
      <KindChoice draft={draft} onChange={change} />
      <Inputs {...fields} />
      <ConditionFields {...fields} />
      <Times {...fields} />
      {draft.kind !== null && (
        <div class="field">
          <span class="label">In words</span>
          <output class="words" aria-label="The rule in words">
            {wordsOf(shown, sources)}
          </output>
          {/* Words are made here: what the server says of them has no other place. */}
          {faultAt(error, "naturalLanguageQuery") && <p class="fault">{faultAt(error, "naturalLanguageQuery")}</p>}
        </div>
      )}
      {loaded.data !== null && <LazyRulePanel draft={shown} sources={loaded.data} rule={rule} />}
      <TextField
        label="Own URL"
        type="url"
        value={draft.webhookUrl}
        onInput={(webhookUrl) => change({ webhookUrl })}
        placeholder="https://…"
        hint="Optional: the organization's webhooks receive triggers in any case"
        fault={faultAt(error, "webhookUrl")}
      />
      {doubts.map((doubt) => (
        <p class="warn-box" role="status" key={doubt}>
          <span>{doubt}</span>
        </p>
      ))}
      {/* The one that was refused: each further one would take the focus from the field that is being corrected. */}
      <ErrorBox error={error === null ? null : refused} shownAt={shownAt} />
      <div class="actions end">
        <LinkButton href={rule === null ? "#/rules" : `#/rules/${rule._id}`}>Cancel</LinkButton>
        <Button type="submit" look="primary" busy={running || loaded.data === null}>
          {rule === null ? "Create rule" : "Save"}
        </Button>
      </div>
    </form>
  );
}
