/** One rule: how it stands, what it asks, its history and the deliveries to its own URL. */
import { useMemo, useState } from "preact/hooks";
import type { Matcher } from "../api/query";
import { acknowledgeRule, changeRule, deleteRule, getRule, ruleDeliveries, type Rule } from "../api/rules";
import { getSource, listSources, type Source } from "../api/sources";
import { formatAny, formatSpan } from "../app/format";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
import { go } from "../app/route";
import { conditionInWords } from "../explorer/dimension-words";
import { readConditions } from "../explorer/dimensions";
import { exploreHref } from "../explorer/state";
import { Button, LinkButton } from "../parts/button";
import { Confirm, Dialog } from "../parts/dialog";
import { ErrorBox, TextField, faultAt } from "../parts/forms";
import { LazyRuleChart } from "../preview/lazy";
import { LoadError, Page, Section, Skeleton, TableFrame, WhenLoaded } from "../parts/page";
import { Ago, ExternalUrl, Figure, Snippet } from "../parts/show";
import { evaluateCommand } from "../parts/snippets";
import { Deliveries } from "./deliveries";
import { RuleHistory } from "./rule-history";
import { draftOf } from "./rule-draft";
import { OPERATORS } from "./rule-kinds";
import { wordsDisagree, wordsOf } from "./rule-words";
import { OutcomePill, RuleStatePill, RuleTimers, useClearing } from "./rule-state";

const TRAIL = [{ href: "#/rules", label: "Alert rules" }];

async function fetchRule(id: string, signal: AbortSignal): Promise<{ rule: Rule; source: Source | null }> {
  const rule = await getRule(id, signal);
  const source = await getSource(rule.bucketId, rule.dataSourceId, signal).catch(() => null);
  return { rule, source };
}

export function RulePage({ id }: { id: string }) {
  const loaded = useLoad(`rule ${id}`, (signal) => fetchRule(id, signal), ["rules", "sources"]);
  useClearing(loaded.data === null ? undefined : [loaded.data.rule], loaded.reload);
  const [deleting, setDeleting] = useState(false);
  const [acknowledging, setAcknowledging] = useState(false);
  const pause = useAction(async () => {
    if (loaded.data === null) return;
    const status = loaded.data.rule.status === "active" ? "paused" : "active";
    await changeRule(id, { status });
    notify(status === "paused" ? "Paused: the rule is not evaluated until it is resumed." : "Resumed.");
    loaded.reload();
  });
  if (loaded.data === null) {
    return (
      <Page title="Alert rule" trail={TRAIL}>
        {loaded.error !== null ? (
          <LoadError error={loaded.error} what="rule" onRetry={loaded.reload} />
        ) : (
          <Skeleton shown={loaded.slow} what="rule" />
        )}
      </Page>
    );
  }
  const { rule, source } = loaded.data;
  return (
    <Page
      title={rule.name}
      trail={TRAIL}
      intro={rule.condition}
      actions={
        <>
          <LinkButton href={chartOf(rule)} icon="explore" look="primary">
            Explore
          </LinkButton>
          <IfMay>
            {(rule.state === "firing" || rule.state === "clearing") && (
              <Button icon="check" onClick={() => setAcknowledging(true)}>
                Acknowledge
              </Button>
            )}
            <Button
              icon={rule.status === "active" ? "pause" : "play"}
              busy={pause.running}
              onClick={() => void pause.run()}
            >
              {rule.status === "active" ? "Pause" : "Resume"}
            </Button>
            <LinkButton href={`#/rules/${id}/edit`} icon="edit">
              Edit
            </LinkButton>
            <Button icon="trash" look="danger" onClick={() => setDeleting(true)}>
              Delete
            </Button>
          </IfMay>
        </>
      }
    >
      <ErrorBox error={pause.error} />
      <dl class="figures card">
        <Figure label="State">
          <RuleStatePill rule={rule} />
        </Figure>
        <Figure label="Timers">
          <RuleTimers rule={rule} />
        </Figure>
        <Figure label="Last verdict" note={<Ago at={rule.lastEvaluatedAt} />}>
          {rule.lastOutcome === null ? <span class="muted">none yet</span> : <OutcomePill outcome={rule.lastOutcome} />}
        </Figure>
        <Figure label="Last fired">
          <Ago at={rule.lastTriggeredAt} />
        </Figure>
        {rule.acknowledgement !== null && (
          <Figure label="Acknowledged" note={rule.acknowledgement.note ?? undefined}>
            <Ago at={rule.acknowledgement.at} />
          </Figure>
        )}
      </dl>
      <Facts rule={rule} source={source} />
      <LastDay rule={rule} />
      {rule.evaluation === null ? (
        <Section title="Evaluation" class="card">
          <p>
            This rule has no evaluation block, so it is never due.{" "}
            <a href={`#/rules/${id}/edit`}>Add one</a>.
          </p>
        </Section>
      ) : (
        <Evaluation rule={rule} />
      )}
      <RuleHistory ruleId={id} />
      {rule.webhookUrl !== null && (
        <Deliveries
          id={`rule ${id}`}
          title="Deliveries to the rule's URL"
          list={(limit, offset, signal) => ruleDeliveries(id, limit, offset, signal)}
        />
      )}
      {acknowledging && (
        <Acknowledge
          rule={rule}
          onClose={() => {
            setAcknowledging(false);
            loaded.reload();
          }}
        />
      )}
      {deleting && (
        <Confirm
          title="Delete rule"
          action="Delete rule"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await deleteRule(id);
            notify(`Rule “${rule.name}” deleted.`);
            go("#/rules");
          }}
        >
          <p>
            <strong class="name">{rule.name}</strong> and its history will be gone. To stop it for a while, pause it
            instead.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

function LastDay({ rule }: { rule: Rule }) {
  const draft = useMemo(() => draftOf(rule), [rule]);
  const sources = useLoad(`sources ${rule.bucketId}`, (signal) => listSources(rule.bucketId, signal), ["sources"]);
  if (draft.inputs[0]?.field === "") return null;
  return (
    <Section title="Last day" note="When it has fired, silences that are in force over it, and annotations">
      <WhenLoaded loaded={sources} what="sources">
        {(list) => <LazyRuleChart draft={draft} sources={list} rule={rule} firings={null} />}
      </WhenLoaded>
    </Section>
  );
}

function Acknowledge({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  const [note, setNote] = useState("");
  const { run, running, error } = useAction(async () => {
    await acknowledgeRule(rule._id, note.trim());
    notify("Acknowledged: everybody sees it until the rule is armed again.");
    onClose();
  });
  return (
    <Dialog title="Acknowledge" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Note"
          value={note}
          onInput={setNote}
          maxLength={1000}
          hint="Optional: who looks after it, and what is known"
          fault={faultAt(error, "note")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "note"} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            Acknowledge
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Understood({ parsed }: { parsed: NonNullable<Rule["parsedCondition"]> }) {
  return (
    <code>
      {parsed.field} {OPERATORS[parsed.operator]?.sign ?? parsed.operator.replaceAll("_", " ")} {boundsOf(parsed.value)}
      {parsed.percent === true && " %"}
    </code>
  );
}

const boundsOf = (value: unknown): string =>
  Array.isArray(value) ? value.map(formatAny).join(" … ") : formatAny(value);

/** Which series an input takes; what the page has no words for stands as it is. */
const seriesInWords = (dimensions: Record<string, Matcher>): string =>
  readConditions(dimensions)?.map(conditionInWords).join(" and ") ?? JSON.stringify(dimensions);

function chartOf(rule: Rule): string {
  const inputs = rule.evaluation?.inputs ?? [];
  const own =
    rule.parsedCondition === null ? [] : [{ field: rule.parsedCondition.field, dataSourceId: rule.dataSourceId }];
  const fields = [...inputs, ...own].map((input) => ({
    bucketId: rule.bucketId,
    sourceId: input.dataSourceId ?? rule.dataSourceId,
    field: input.field,
  }));
  const [first, ...others] = inputs;
  // Several inputs may take different series; a chart has one choice.
  const conditions = others.length === 0 ? (readConditions(first?.dimensions ?? {}) ?? []) : [];
  return exploreHref(
    fields.filter(
      (ref, index) =>
        fields.findIndex((other) => other.sourceId === ref.sourceId && other.field === ref.field) === index,
    ),
    undefined,
    { conditions },
  );
}

function Facts({ rule, source }: { rule: Rule; source: Source | null }) {
  const draft = draftOf(rule);
  return (
    <Section title="Condition" class="card">
      <dl class="rows">
        <div>
          <dt>Source</dt>
          <dd>
            <a class="name" href={`#/buckets/${rule.bucketId}/sources/${rule.dataSourceId}`}>
              {source?.name ?? rule.dataSourceId}
            </a>
          </dd>
        </div>
        <div>
          <dt>{rule.evaluation === null ? "Understood as" : "Fires when"}</dt>
          <dd>
            {draft.kind !== null && rule.evaluation !== null ? (
              <span class="name">
                {wordsOf({ ...draft, sourceId: rule.dataSourceId }, source === null ? [] : [source])}
              </span>
            ) : rule.evaluation !== null ? (
              <span class="muted">your own evaluator decides, from the text and the parameters below</span>
            ) : rule.parsedCondition === null ? (
              <span class="muted">only an evaluator can interpret the text</span>
            ) : (
              <Understood parsed={rule.parsedCondition} />
            )}
            {wordsDisagree(rule) && rule.parsedCondition !== null && (
              <p class="warn-box">
                <span>
                  The words of this rule say something else: <Understood parsed={rule.parsedCondition} />.{" "}
                  <a href={`#/rules/${rule._id}/edit`}>Edit</a> it, and they are made anew.
                </span>
              </p>
            )}
          </dd>
        </div>
        <div>
          <dt>Own URL</dt>
          <dd>
            {rule.webhookUrl === null ? (
              <span class="muted">none; triggers go to the webhooks</span>
            ) : (
              <ExternalUrl url={rule.webhookUrl} />
            )}
          </dd>
        </div>
      </dl>
    </Section>
  );
}

function Evaluation({ rule }: { rule: Rule }) {
  const { evaluation } = rule;
  if (evaluation === null) return null;
  return (
    <Section
      title="Evaluation"
      class="card"
      note={
        evaluation.kind === undefined ? undefined : (
          <>
            Kind <code>{evaluation.kind}</code>
          </>
        )
      }
    >
      <dl class="figures">
        <Figure label="Evaluated every">{formatSpan(evaluation.intervalSeconds)}</Figure>
        <Figure label="Window">{formatSpan(evaluation.windowSeconds)}</Figure>
        <Figure label="Clears after">{formatSpan(evaluation.dwellSeconds ?? evaluation.windowSeconds)}</Figure>
      </dl>
      <div class="columns">
        <TableFrame label="Inputs" stacked>
          <thead>
            <tr>
              <th scope="col">Input</th>
              <th scope="col">Field</th>
              <th scope="col">Grouped</th>
              <th scope="col">Window</th>
            </tr>
          </thead>
          <tbody>
            {evaluation.inputs.map((input) => (
              <tr key={input.key}>
                <td class="mono name">{input.key}</td>
                <td class="name" data-label="Field">
                  {input.field}
                  {input.dimensions !== undefined && <div class="hint">{seriesInWords(input.dimensions)}</div>}
                </td>
                <td data-label="Grouped">
                  {input.aggregation === undefined ? "points" : `${input.aggregation} by ${input.groupBy}`}
                  {input.groupByDimensions !== undefined && `, each ${input.groupByDimensions.join(", ")}`}
                </td>
                <td data-label="Window">
                  {input.windowSeconds === undefined ? "the rule's" : formatSpan(input.windowSeconds)}
                </td>
              </tr>
            ))}
          </tbody>
        </TableFrame>
        <TableFrame label="Parameters" stacked>
          <thead>
            <tr>
              <th scope="col">Parameter</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(evaluation.parameters).map(([name, value]) => (
              <tr key={name}>
                <td class="mono name">{name}</td>
                <td class="name" data-label="Value">
                  {formatAny(value)}
                </td>
              </tr>
            ))}
            {Object.keys(evaluation.parameters).length === 0 && (
              <tr>
                <td class="muted" colSpan={2}>
                  none
                </td>
              </tr>
            )}
          </tbody>
        </TableFrame>
      </div>
      <Snippet title="Run the reference evaluator with an integration key" code={evaluateCommand(location.origin)} />
    </Section>
  );
}
