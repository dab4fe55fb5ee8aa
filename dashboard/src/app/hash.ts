/** A route as it stands in the hash. Pure. */

export interface Route {
  /** `["buckets", "6b…", "sources"]`; empty at home. */
  path: string[];
  search: URLSearchParams;
}

export function routeOf(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const at = text.indexOf("?");
  const path = (at < 0 ? text : text.slice(0, at)).split("/").filter((segment) => segment !== "");
  return { path: path.map(decoded), search: new URLSearchParams(at < 0 ? "" : text.slice(at + 1)) };
}

/** A stray percent sign is a percent sign. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
