/** The requests of a try, on a server that is made up. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { emptyInput, newDraft, type RuleDraft } from "../pages/rule-draft";
import { emptyCondition, type Condition } from "../pages/rule-kinds";
import { runTrial } from "./trial";
import { keyOf } from "./use-trial";

const SOURCES = [{ _id: "s", name: "Pump", schema: { x: { type: "number" as const } } }];
const NOW = Date.parse("2026-03-04T12:00:30Z");

function draft(part: Partial<RuleDraft>, condition: Partial<Condition>): RuleDraft {
  const common = { ...newDraft("b", "s"), inputs: [emptyInput("x")], windowSeconds: "600", intervalSeconds: "300" };
  return { ...common, ...part, condition: { ...emptyCondition(), ...condition } };
}

interface Sent {
  path: string;
  body: Record<string, any>;
}

/** `answer`: of a query; the timeline says that each verdict that is met has fired. */
function serve(answer: (body: Sent["body"], sent: Sent[]) => unknown): Sent[] {
  const sent: Sent[] = [];
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    const body = JSON.parse(String(init.body)) as Sent["body"];
    sent.push({ path, body });
    const timeline = (body["verdicts"] ?? []).map(({ at, outcome }: { at: string; outcome: string }) => ({
      ...{ at, outcome, previousState: "armed", state: "firing", accepted: true },
      triggered: outcome === "met",
    }));
    return new Response(JSON.stringify(path.endsWith("/verdicts") ? { timeline } : answer(body, sent)));
  });
  return sent;
}

const columns = (timestamp: string[], values: Record<string, unknown>, metadata: object = {}) => ({
  columns: { timestamp, dataSourceId: timestamp.map(() => "s"), values: { x: values } },
  metadata: { hasMore: false, ...metadata },
});

const run = (of: RuleDraft) => runTrial(of, SOURCES, NOW, new AbortController().signal);

afterEach(() => vi.unstubAllGlobals());

describe("a try", () => {
  test("asks for counts, and posts a verdict for each cycle", async () => {
    const at = "2026-03-04T11:50:00Z";
    const sent = serve(({ filters }) => columns([at], { count: [filters.values === undefined ? 5 : 1] }));
    const trial = await run(draft({ name: " ", webhookUrl: "no url" }, { value: "7" }));
    expect(sent.map(({ path }) => path)).toEqual([
      "/api/data/query",
      "/api/data/query",
      "/api/alerts/backtest/verdicts",
    ]);
    expect(sent[0]!.body).toMatchObject({ aggregation: ["count"], groupBy: "300s" });
    expect(sent[0]!.body["filters"]).toMatchObject({ endTime: "2026-03-04T11:59:59.999999999Z" });
    expect(sent[1]!.body["filters"].values).toEqual({ x: { gt: 7 } });
    const { verdicts, ...rule } = sent[2]!.body;
    expect(rule).toMatchObject({ name: "draft", bucketId: "b", dataSourceId: "s" });
    expect(rule["webhookUrl"]).toBeUndefined();
    expect(verdicts).toHaveLength(2_017);
    expect(verdicts.filter(({ outcome }: { outcome: string }) => outcome === "met")).toEqual([
      { at: "2026-03-04T11:54:59.999999999Z", outcome: "met" },
      { at: "2026-03-04T11:59:59.999999999Z", outcome: "met" },
    ]);
    expect(trial).toMatchObject({ kind: "done", range: { name: "7 days" }, cycles: 2_017, inconclusive: 2_015 });
    expect(trial).toMatchObject({ firings: [Date.parse("2026-03-04T11:54:59.999Z"), Date.parse("2026-03-04T11:59:59.999Z")] });
  });

  test("pages of steps are read behind each other", async () => {
    const starts = ["2026-03-04T11:40:00Z", "2026-03-04T11:50:00Z"];
    const sent = serve(({ offset }) => columns([starts[offset]!], { count: [1] }, { hasMore: offset === 0 }));
    const trial = await run(draft({ kind: "absence" }, { maxGapSeconds: "600" }));
    expect(sent.slice(0, -1).map(({ body }) => body["offset"])).toEqual([0, 1]);
    const verdicts: { at: string; outcome: string }[] = sent.at(-1)!.body["verdicts"];
    expect(verdicts.filter(({ outcome }) => outcome === "not_met").map(({ at }) => at.slice(11, 16))).toEqual([
      "11:44",
      "11:49",
      "11:54",
      "11:59",
    ]);
    expect(trial.kind).toBe("done");
  });

  test("where the points of the longest range are too many, a shorter one is taken", async () => {
    // A page a day, without end.
    const sent = serve((_body, all) => {
      const page = all.length - 1;
      const ago = (hours: number) => new Date(NOW - (page * 24 + hours) * 3_600_000).toISOString();
      return {
        columns: { timestamp: [ago(2), ago(10)], dataSourceId: ["s", "s"], values: { x: [1, 2] } },
        metadata: { hasMore: true, nextCursor: String(page) },
      };
    });
    const trial = await run(draft({ kind: "zscore" }, { minPoints: "2" }));
    expect(sent.slice(1, 5).map(({ body }) => body["cursor"])).toEqual(["0", "1", "2", "3"]);
    expect(trial).toMatchObject({ kind: "done", range: { name: "3 days" } });
  });

  test("what cannot be tried out asks nothing", async () => {
    const sent = serve(() => ({}));
    expect(await run(draft({ intervalSeconds: "60", windowSeconds: String(30 * 86_400) }, { value: "7" }))).toMatchObject({
      kind: "cannot",
      reason: expect.stringMatching(/window is too long/),
    });
    expect(sent).toEqual([]);
  });
});

describe("when a try is made", () => {
  test("never with faults, but without a name", () => {
    expect(keyOf(draft({ name: "" }, { value: "7" }), SOURCES)).not.toBeNull();
    expect(keyOf(draft({}, { value: "" }), SOURCES)).toBeNull();
    expect(keyOf(draft({ windowSeconds: "5" }, { value: "7" }), SOURCES)).toBeNull();
  });

  test("again when what it depends on has changed, and only then", () => {
    const key = keyOf(draft({}, { value: "7" }), SOURCES);
    expect(keyOf(draft({ name: "Pump", webhookUrl: "https://x" }, { value: "7" }), SOURCES)).toBe(key);
    expect(keyOf(draft({}, { value: "8" }), SOURCES)).not.toBe(key);
    expect(keyOf(draft({ dwellSeconds: "9" }, { value: "7" }), SOURCES)).not.toBe(key);
  });
});
