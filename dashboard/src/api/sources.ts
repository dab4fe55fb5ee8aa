/** Data sources and their schemas. */
import { allPages, queryString, request, type Pagination } from "./client";

export type FieldType = "number" | "string" | "boolean";

export interface FieldDefinition {
  type: FieldType;
  unit?: string;
  description?: string;
  /** Of a field that no source has, and a view computes. */
  expression?: string;
}

export type Schema = Record<string, FieldDefinition>;

/** Which members of metadata split the points into series: none, all, or those of these names. */
export type Dimensions = null | "all" | string[];

/** What becomes of a point that is sent again. */
export type Duplicates = "keep" | "skip";

export interface Source {
  _id: string;
  bucketId: string;
  name: string;
  type: string;
  description?: string;
  schema: Schema;
  schemaMode: "strict" | "extend";
  downsampling: boolean;
  dimensions: Dimensions;
  duplicates: Duplicates;
  status: "active" | "inactive";
  /** Null when no points are expected. */
  expectedIntervalSeconds: number | null;
  freshness: "fresh" | "stale" | "unknown";
  stats: {
    totalDataPoints: number;
    firstDataPoint: string | null;
    lastDataPoint: string | null;
    /** Null below two points. */
    averageIntervalSeconds: number | null;
    /** Null of a source without dimensions. */
    seriesCount: number | null;
  };
  createdAt: string;
  updatedAt: string;
}

export interface SourceInput {
  name?: string;
  type?: string;
  description?: string;
  schema?: Schema;
  schemaMode?: Source["schemaMode"];
  downsampling?: boolean;
  dimensions?: Dimensions;
  duplicates?: Duplicates;
  status?: Source["status"];
  /** The server says what is wrong with a text. */
  expectedIntervalSeconds?: number | string | null;
}

export const listSources = (bucketId: string, signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/buckets/${bucketId}/sources${queryString({ limit: 1000, offset })}`;
    const answer = await request<{ dataSources: Source[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.dataSources, pagination: answer.pagination };
  });

/** The sources of several buckets. */
export const listSourcesOf = async (bucketIds: string[], signal?: AbortSignal): Promise<Source[]> =>
  (await Promise.all(bucketIds.map((id) => listSources(id, signal)))).flat();

export const getSource = (bucketId: string, id: string, signal?: AbortSignal) =>
  request<{ dataSource: Source }>("GET", `/api/buckets/${bucketId}/sources/${id}`, { signal }).then(
    (a) => a.dataSource,
  );

export const createSource = (bucketId: string, body: SourceInput) =>
  request<{ dataSource: Source }>("POST", `/api/buckets/${bucketId}/sources`, { body }).then((a) => a.dataSource);

export const changeSource = (bucketId: string, id: string, body: SourceInput) =>
  request<{ dataSource: Source }>("PATCH", `/api/buckets/${bucketId}/sources/${id}`, { body }).then(
    (a) => a.dataSource,
  );

export const deleteSource = (bucketId: string, id: string) =>
  request<{ deletedResources: { dataPoints: number; alertRules: number } }>(
    "DELETE",
    `/api/buckets/${bucketId}/sources/${id}`,
  ).then((a) => a.deletedResources);
