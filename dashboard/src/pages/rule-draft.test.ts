import { describe, expect, test } from "vitest";
import type { Evaluation, Rule } from "../api/rules";
import { bodyOf, draftOf, emptyInput, newDraft, type KnownSource, type RuleDraft } from "./rule-draft";
import { doubtsOf, durationFault, faultsOf, numberFault } from "./rule-faults";
import { emptyCondition } from "./rule-kinds";
import { wordsDisagree, wordsOf } from "./rule-words";

const SOURCE: KnownSource = {
  _id: "s",
  name: "Pump",
  stats: { averageIntervalSeconds: 60 },
  schema: {
    t: { type: "number", unit: "°C" },
    share: { type: "number", unit: "%" },
    mode: { type: "string" },
    on: { type: "boolean" },
    "flow rate": { type: "number" },
  },
};
const OTHER: KnownSource = { _id: "s2", name: "Tank", schema: { t: { type: "number" } } };
const SOURCES = [SOURCE, OTHER];

const EVALUATION: Evaluation = {
  kind: "range",
  intervalSeconds: 60,
  windowSeconds: 300,
  dwellSeconds: 0,
  inputs: [
    {
      key: "x",
      field: "t",
      aggregation: "max",
      groupBy: "hour",
      windowSeconds: 600,
      dataSourceId: "s2",
      fill: 0,
      timezone: "Asia/Kolkata",
    },
  ],
  parameters: { low: 1, high: 2, inside: true, match: "count", minCount: 2 },
};

const RULE: Rule = {
  _id: "r",
  bucketId: "b",
  dataSourceId: "s",
  name: "hot",
  condition: "t exceeds 3",
  parsedCondition: { field: "t", operator: "gt", value: 3 },
  webhookUrl: "https://example.com/",
  status: "active",
  cooldownMinutes: 5,
  evaluation: EVALUATION,
  state: "armed",
  lastOutcome: null,
  lastEvaluatedAt: null,
  conditionClearedAt: null,
  nextDueAt: null,
  overdue: false,
  acknowledgement: null,
  lastTriggeredAt: null,
  createdAt: "",
  updatedAt: "",
};

const draft = (part: Partial<RuleDraft>, condition = {}): RuleDraft => ({
  ...newDraft("b", "s"),
  name: "n",
  inputs: [emptyInput("t")],
  ...part,
  condition: { ...emptyCondition(), ...condition },
});

const faults = (value: RuleDraft) => faultsOf(value, SOURCES).map(({ path }) => path.join("."));
const P = "evaluation.parameters.";

describe("a rule that is opened and saved", () => {
  test("is judged as before", () => {
    const body = bodyOf(draftOf(RULE), RULE, SOURCES);
    expect(body.evaluation).toEqual(EVALUATION);
    expect(body.naturalLanguageQuery).toBe("t of Tank (max by hour) is between 1 and 2, at least 2 hours");
    expect(faults(draftOf(RULE))).toEqual([]);
  });

  test("takes the series that it took, and says so", () => {
    const input = { ...EVALUATION.inputs[0]!, dimensions: { host: "a", cpu: { not: ["0", "1"] } } };
    const draft = draftOf({ ...RULE, evaluation: { ...EVALUATION, inputs: [input] } });
    expect(bodyOf(draft, RULE, SOURCES).evaluation?.inputs).toEqual([input]);
    expect(wordsOf(draft, SOURCES)).toContain("where host is a and cpu is not 0 or 1");
    const conditions = [{ name: "host", operator: "is" as const, values: [] }];
    const faulty = { ...draft, inputs: [{ ...draft.inputs[0]!, conditions }] };
    expect(faultsOf(faulty, SOURCES).map(({ path }) => path.join("."))).toContain("evaluation.inputs.0.dimensions");
    // Groups are of grouped rows; points have none.
    const hourly = { ...draft.inputs[0]!, grouping: "avg hour", groups: ["host", "cpu"] };
    const grouped = { ...draft, inputs: [hourly, { ...hourly, grouping: "" }] };
    const [rows, points] = bodyOf(grouped, RULE, SOURCES).evaluation!.inputs;
    expect(rows!.groupByDimensions).toEqual(["host", "cpu"]);
    expect(points).not.toHaveProperty("groupByDimensions");
    expect(wordsOf(grouped, SOURCES)).toContain("is not 0 or 1 for each host and cpu or ");
    // What the form has no fields for stays as another client has said it.
    const odd = { ...input, dimensions: { host: ["a", null] }, groupByDimensions: ["host"] };
    const kept = draftOf({ ...RULE, evaluation: { ...EVALUATION, inputs: [odd] } });
    expect(bodyOf(kept, RULE, SOURCES).evaluation?.inputs).toEqual([odd]);
  });

  test("of points has nothing to fill", () => {
    const opened = draftOf(RULE);
    const points = { ...opened, inputs: opened.inputs.map((input) => ({ ...input, grouping: "" })) };
    const [input] = bodyOf(points, RULE, SOURCES).evaluation!.inputs;
    expect(input).toMatchObject({ timezone: "Asia/Kolkata" });
    expect(input).not.toHaveProperty("fill");
  });

  test("for an evaluator of one's own keeps its words and parameters", () => {
    const own = { ...RULE, evaluation: { ...EVALUATION, kind: "drift", parameters: { a: 1, b: "x", c: true } } };
    const body = bodyOf(draftOf(own), own, SOURCES);
    expect(body).toMatchObject({ naturalLanguageQuery: "t exceeds 3", evaluation: own.evaluation });
  });

  test("that nobody judged is judged by what its words say", () => {
    const plain = { ...RULE, evaluation: null };
    expect(bodyOf(draftOf(plain), plain, SOURCES).evaluation).toMatchObject({
      kind: "threshold",
      inputs: [{ field: "t" }],
      parameters: { operator: "gt", value: 3 },
    });
  });

  test("loses what its kind does not know, and the editor knows of it", () => {
    const odd = { ...RULE, evaluation: { ...EVALUATION, parameters: { low: 1, high: 2, hgih: 3 } } };
    expect(draftOf(odd).unknown).toEqual(["hgih"]);
    expect(bodyOf(draftOf(odd), odd, SOURCES).evaluation?.parameters).toEqual({ low: 1, high: 2 });
  });

  test("whose URL was emptied has none", () => {
    expect(bodyOf({ ...draftOf(RULE), webhookUrl: " " }, RULE, SOURCES).webhookUrl).toBeNull();
    expect(bodyOf(draft({}), null, SOURCES)).not.toHaveProperty("webhookUrl");
  });
});

describe("what cannot fire has a fault", () => {
  test.each<[string, RuleDraft, string[]]>([
    ["no threshold", draft({}), [`${P}value`]],
    ["a comma", draft({}, { value: "5,5" }), [`${P}value`]],
    ["a sign for an operator", draft({}, { operator: ">", value: "5" }), [`${P}operator`]],
    ["an order of texts", draft({ inputs: [emptyInput("mode")] }, { value: "a" }), [`${P}operator`]],
    ["no field", draft({ inputs: [emptyInput()] }, { value: "5" }), ["evaluation.inputs.0.field"]],
    ["neither true nor false", draft({ inputs: [emptyInput("on")] }, { operator: "eq" }), [`${P}value`]],
    ["ends the wrong way round", draft({ kind: "range" }, { low: "9", high: "1" }), [`${P}high`]],
    [
      "a range of a text",
      draft({ kind: "range", inputs: [emptyInput("mode")] }, { low: "1", high: "2" }),
      ["evaluation.inputs.0.field"],
    ],
    ["no change", draft({ kind: "change" }, { by: "0" }), [`${P}by`]],
    ["more silence than window", draft({ kind: "absence" }, { maxGapSeconds: "900" }), ["evaluation.windowSeconds"]],
    [
      "more silence than an input's own window",
      draft({ kind: "absence", inputs: [{ ...emptyInput("t"), windowSeconds: "60" }] }, { maxGapSeconds: "300" }),
      ["evaluation.inputs.0.windowSeconds"],
    ],
    ["more rows than a window has", draft({}, { value: "5", match: "count", minCount: "1000" }), [`${P}minCount`]],
    [
      "more minutes than a window has",
      draft(
        { inputs: [{ ...emptyInput("t"), grouping: "avg minute" }] },
        { value: "5", match: "count", minCount: "7" },
      ),
      [`${P}minCount`],
    ],
    ["a number of another notation", draft({}, { value: "0x10" }), [`${P}value`]],
    ["one value to compare with", draft({ kind: "zscore" }, { minPoints: "1" }), [`${P}minPoints`]],
    ["no count", draft({}, { value: "5", match: "count" }), [`${P}minCount`]],
    ["too often", draft({ intervalSeconds: "5" }, { value: "5" }), ["evaluation.intervalSeconds"]],
    ["no kind", draft({ kind: null, text: "odd" }), ["evaluation.kind"]],
    ["another's kind", draft({ kind: null, text: "odd", ownKind: "range" }), ["evaluation.kind"]],
  ])("%s", (_, value, at) => expect(faults(value)).toEqual(at));

  test("what will hardly fire is said, and can be saved", () => {
    const doubts = (value: RuleDraft) => doubtsOf(value, SOURCES);
    expect(faults(draft({ kind: "zscore" }))).toEqual([]);
    expect(doubts(draft({ kind: "zscore" }))[0]).toContain("About 5 points come in a window, and it needs 31");
    expect(doubts(draft({ kind: "zscore", windowSeconds: "3600" }))).toEqual([]);
    const rare = doubts(draft({ intervalSeconds: "3600" }, { value: "5" }));
    expect(rare[0]).toContain("every 1 h and looks at the last 5 min");
    expect(doubts(draft({}, { value: "5", match: "count", minCount: "5" }))).toEqual([]);
  });

  test("a count of texts is a number", () => {
    const counted = { ...emptyInput("mode"), grouping: "count minute" };
    const value = draft({ inputs: [counted] }, { value: "5" });
    expect(faults(value)).toEqual([]);
    expect(bodyOf(value, null, SOURCES).evaluation?.parameters).toEqual({ operator: "gt", value: 5 });
  });

  test("lengths say what is wrong", () => {
    expect(durationFault("5x")).toBe("must be a length such as 90s, 5m or 2h, not 5x");
    expect(durationFault("5", { min: 60, max: 86_400 })).toBe("must be from 1 min to 1 d, not 5 s");
    expect(durationFault("")).toBe("a length is needed here, such as 5m");
    expect(durationFault("", { optional: true })).toBeNull();
    expect(durationFault("0", { above: 0 })).toBe("must be greater than 0");
  });

  test("groups are of a step, and of what the field has", () => {
    const grouped = (field: string, grouping: string) =>
      faults(draft({ inputs: [{ ...emptyInput(field), grouping }] }, { operator: "eq", value: "5" }));
    expect(grouped("t", "p95 10m")).toEqual([]);
    expect(grouped("mode", "distinct day")).toEqual([]);
    expect(grouped("t", "avg ")).toEqual(["evaluation.inputs.0.groupBy"]);
    expect(grouped("t", "avg 9x")).toEqual(["evaluation.inputs.0.groupBy"]);
    expect(grouped("mode", "avg hour")).toEqual(["evaluation.inputs.0.aggregation"]);
  });

  test("several inputs are met together, or one of them is", () => {
    const inputs = [emptyInput("t"), { ...emptyInput("share"), key: "y" }];
    const parameters = { operator: "gt", value: 5, inputs: "all" };
    const rule = { ...RULE, evaluation: { ...EVALUATION, kind: "threshold", parameters } };
    expect(draftOf(rule).unknown).toEqual([]);
    expect(bodyOf(draftOf(rule), rule, SOURCES).evaluation?.parameters).toEqual(parameters);
    expect(wordsOf(draft({ inputs }, { value: "5", inputs: "all" }), SOURCES)).toBe("t and share is above 5 °C");
    expect(wordsOf(draft({ inputs }, { value: "5" }), SOURCES)).toBe("t or share is above 5 °C");
    expect(bodyOf(draft({ inputs }, { value: "5" }), null, SOURCES).evaluation?.parameters).not.toHaveProperty("inputs");
    expect(faults(draft({ inputs }, { value: "5", inputs: "some" }))).toEqual([`${P}inputs`]);
  });

  test("numbers say what is wrong", () => {
    expect(numberFault("5,5")).toBe("must be a number such as 5.5, not 5,5");
    expect(numberFault("5", { min: 60, max: 86_400 })).toBe("must be a number from 60 to 86400, not 5");
    expect(numberFault("", { optional: true })).toBeNull();
  });
});

test.each<[RuleDraft, string]>([
  [draft({}, { value: "5" }), "t is above 5 °C"],
  [draft({ inputs: [emptyInput("mode")] }, { operator: "neq", value: "auto" }), `mode is not "auto"`],
  [draft({ inputs: [emptyInput("on")] }, { operator: "eq", value: "false" }), "on is false"],
  [
    draft({ kind: "range", inputs: [emptyInput("flow rate")] }, { low: "1", high: "2" }),
    `"flow rate" is outside 1 to 2`,
  ],
  [draft({ kind: "change" }, { direction: "decrease", by: "5", percent: true }), "t decreases by 5 %"],
  [draft({ kind: "change", inputs: [emptyInput("share")] }, { by: "5" }), "share increases by 5 percentage points"],
  [draft({ kind: "absence" }, { maxGapSeconds: "" }), "no t for 5 min"],
  [draft({ kind: "zscore" }), "t is more than 3 standard deviations from its mean"],
  [draft({}, { match: "all" }), "t is above … °C, every point"],
])("words are made of parameters: %#", (value, words) => expect(wordsOf(value, SOURCES)).toBe(words));

test("words of another client that say something else are found out", () => {
  const judged = (parameters: Evaluation["parameters"], kind = "threshold", field = "t"): Rule => ({
    ...RULE,
    evaluation: { ...EVALUATION, kind, inputs: [{ key: "x", field }], parameters },
  });
  expect(wordsDisagree(judged({ operator: "gt", value: 3 }))).toBe(false);
  expect(wordsDisagree(judged({ operator: "gt", value: 500 }))).toBe(true);
  expect(wordsDisagree(judged({ operator: "gt", value: 3 }, "threshold", "on"))).toBe(true);
  expect(wordsDisagree(judged({ anything: 1 }, "of-ones-own"))).toBe(false);
});
