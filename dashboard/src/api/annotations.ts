/** Annotations: notes at a time or for a while, about a bucket or one of its sources. */
import { allPages, queryString, request, type Pagination } from "./client";

export interface Annotation {
  _id: string;
  bucketId: string;
  dataSourceId: string | null;
  at: string;
  until: string | null;
  text: string;
}

export interface AnnotationInput {
  bucketId: string;
  dataSourceId?: string;
  at: string;
  until?: string;
  text: string;
}

export const listAnnotations = (bucketId: string, signal?: AbortSignal) =>
  allPages(async (offset) => {
    const path = `/api/annotations${queryString({ bucketId, limit: 1000, offset })}`;
    const answer = await request<{ annotations: Annotation[]; pagination: Pagination }>("GET", path, { signal });
    return { items: answer.annotations, pagination: answer.pagination };
  });

export const createAnnotation = (body: AnnotationInput) =>
  request<{ annotation: Annotation }>("POST", "/api/annotations", { body }).then((a) => a.annotation);

export const deleteAnnotation = (id: string) => request<unknown>("DELETE", `/api/annotations/${id}`);
