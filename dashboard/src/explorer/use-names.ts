/** Which dimensions the sources of a view have: those that split by all members of metadata are asked. */
import { useMemo } from "preact/hooks";
import { listDimensions } from "../api/dimensions";
import { useLoad } from "../app/load";
import type { Catalog } from "./catalog";
import { namesOf, type DimensionNames } from "./dimensions";
import type { FieldRef } from "./state";

const NONE: ReadonlyMap<string, string[]> = new Map();

/** `needed`: the view says something of dimensions. Null until it is known. */
export function useNames(catalog: Catalog, fields: FieldRef[], needed: boolean): DimensionNames | null {
  const sources = [...new Set(fields.map(({ sourceId }) => sourceId))].flatMap((id) => catalog.byId.get(id) ?? []);
  const asked = needed ? sources.filter(({ dimensions }) => dimensions === "all") : [];
  const key = asked.length === 0 ? null : `names ${asked.map(({ _id }) => _id).join()}`;
  const loaded = useLoad(key, async (signal) => {
    const lists = await Promise.all(
      asked.map(({ bucketId, _id }) => listDimensions({ bucketId, sourceId: _id }, signal)),
    );
    const found = asked.map(({ _id }, index): [string, string[]] => [_id, lists[index]!.map(({ name }) => name)]);
    // A source without points may have any name.
    return new Map(found.filter(([, names]) => names.length > 0));
  });
  // What cannot be told is left to the server.
  const found = key === null || loaded.error !== null ? NONE : loaded.data;
  const ids = sources.map(({ _id }) => _id).join();
  return useMemo(() => (found === null ? null : namesOf(sources, found)), [found, ids]);
}
