import { expect, test } from "vitest";
import type { Rule } from "../api/rules";
import { bodyOf, draftOf, newDraft } from "./rule-draft";

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
  evaluation: {
    kind: "range",
    intervalSeconds: 60,
    windowSeconds: 300,
    dwellSeconds: 0,
    inputs: [{ key: "x", field: "t", aggregation: "max", groupBy: "hour", windowSeconds: 600, dataSourceId: "s2" }],
    parameters: { low: 1, inside: true, match: "any" },
  },
  state: "armed",
  lastOutcome: null,
  lastEvaluatedAt: null,
  conditionClearedAt: null,
  nextDueAt: null,
  lastTriggeredAt: null,
  createdAt: "",
  updatedAt: "",
};

test("a rule that is opened and saved is unchanged", () => {
  expect(bodyOf(draftOf(RULE), RULE)).toEqual({
    name: RULE.name,
    naturalLanguageQuery: RULE.condition,
    webhookUrl: RULE.webhookUrl,
    evaluation: RULE.evaluation,
  });
});

test("what is emptied is taken away", () => {
  const draft = { ...draftOf(RULE), webhookUrl: " ", evaluated: false };
  expect(bodyOf(draft, RULE)).toMatchObject({ webhookUrl: null, evaluation: null });
  expect(bodyOf(draft, { ...RULE, evaluation: null })).not.toHaveProperty("evaluation");
});

test("a new rule says only what was filled in", () => {
  const body = bodyOf({ ...newDraft("b", "s"), name: "n", text: "t", evaluated: false }, null);
  expect(body).toEqual({ bucketId: "b", dataSourceId: "s", name: "n", naturalLanguageQuery: "t" });
});

test("what is no number is left to the server to name", () => {
  const body = bodyOf({ ...newDraft("b", "s"), intervalSeconds: "often" }, null);
  expect(body.evaluation?.intervalSeconds).toBe("often");
});
