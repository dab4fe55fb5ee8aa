/** What the points of a source are split by: dimensions, their values, and series. */
import { queryString, request, type Pagination } from "./client";

export interface Dimension {
  name: string;
  /** How many values it has. */
  values: number;
}

export interface DimensionValue {
  value: string;
  /** How many series have it. */
  series: number;
}

export interface SeriesOfSource {
  /** Those that its points have. */
  dimensions: Record<string, string>;
  totalDataPoints: number;
  firstDataPoint: string | null;
  lastDataPoint: string | null;
}

export interface SourcePath {
  bucketId: string;
  sourceId: string;
}

const pathOf = ({ bucketId, sourceId }: SourcePath): string => `/api/buckets/${bucketId}/sources/${sourceId}`;

/** Names that a list shows: the server's own bound of a page. */
const NAMES_MAX = 1000;

/** By name; the first thousand. */
export const listDimensions = (source: SourcePath, signal?: AbortSignal) =>
  request<{ dimensions: Dimension[] }>("GET", `${pathOf(source)}/dimensions${queryString({ limit: NAMES_MAX })}`, {
    signal,
  }).then((a) => a.dimensions);

export interface ValuesPage {
  values: DimensionValue[];
  pagination: Pagination;
}

/** Values that begin with `prefix`, which may be empty. */
export const listValues = (
  source: SourcePath,
  name: string,
  prefix: string,
  limit: number,
  offset = 0,
  signal?: AbortSignal,
) => {
  const asked = queryString({ limit, offset, ...(prefix === "" ? {} : { prefix }) });
  return request<ValuesPage>("GET", `${pathOf(source)}/dimensions/${encodeURIComponent(name)}${asked}`, { signal });
};

export interface SeriesPage {
  series: SeriesOfSource[];
  pagination: Pagination;
}

/** Series that have one of the values of each name. */
export function listSeries(
  source: SourcePath,
  having: [name: string, value: string][],
  limit: number,
  offset: number,
  signal?: AbortSignal,
): Promise<SeriesPage> {
  const search = new URLSearchParams([["limit", String(limit)], ["offset", String(offset)], ...having]);
  return request<SeriesPage>("GET", `${pathOf(source)}/series?${search.toString()}`, { signal });
}
