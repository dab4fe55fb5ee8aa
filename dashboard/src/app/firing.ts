/** How many rules fire now, in all buckets: known on every page, and said in the tab's title. */
import { useEffect } from "preact/hooks";
import { listAllRules } from "../api/rules";
import { useLoad } from "./load";
import { setTitleMark } from "./title";

export function useFiring(): number {
  const rules = useLoad("firing", listAllRules, ["rules", "buckets"]);
  const firing = rules.data?.rules.filter((rule) => rule.status === "active" && rule.state === "firing").length ?? 0;
  useEffect(() => setTitleMark(firing > 0 ? `(${firing}) firing` : ""), [firing]);
  // Whoever logs out takes the mark along.
  useEffect(() => () => setTitleMark(""), []);
  return firing;
}
