/** The rules of all buckets, as the frame of every page knows them: how many fire is said there and in the title. */
import { useEffect } from "preact/hooks";
import { listAllRules, type Rule } from "../api/rules";
import { useLoad } from "./load";
import { createStore } from "./store";
import { setTitleMark } from "./title";

/** Null until they are loaded. */
export const knownRules = createStore<{ rules: Rule[]; reload: () => void } | null>(null);

export function useFiring(): number {
  const rules = useLoad("firing", listAllRules, ["rules", "buckets"]);
  const firing = rules.data?.rules.filter((rule) => rule.status === "active" && rule.state === "firing").length ?? 0;
  useEffect(() => setTitleMark(firing > 0 ? `(${firing}) firing` : ""), [firing]);
  useEffect(() => {
    knownRules.set(rules.data === null ? null : { rules: rules.data.rules, reload: rules.reload });
  }, [rules.data]);
  // Whoever logs out takes both along.
  useEffect(
    () => () => {
      setTitleMark("");
      knownRules.set(null);
    },
    [],
  );
  return firing;
}
