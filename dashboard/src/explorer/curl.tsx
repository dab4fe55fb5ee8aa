/** The view's queries as commands, for who wants the same numbers in a script. */
import { Snippet } from "../parts/show";
import { curlPost } from "../parts/snippets";
import type { View } from "./fetch";
import { hasBand, queryOf } from "./plan";

export function CurlTexts({ view: { plan, span } }: { view: View }) {
  const text = plan.buckets
    .map((bucket) => curlPost(`${location.origin}/api/data/query`, queryOf(plan, bucket, span)))
    .join("\n\n");
  return (
    <>
      <p class="hint">
        Put a key of the bucket with read access into <code>TIDEWATCH_KEY</code>.
        {plan.kind === "auto" && !hasBand(plan) && ` The chart draws the ${plan.aggregation} of the rows' stats.`}
      </p>
      <Snippet title={plan.buckets.length > 1 ? "The queries of this view" : "Query"} code={text} />
    </>
  );
}
