/** The way from all buckets to a page of one, with the bucket's name in it. */
import { getBucket } from "../api/buckets";
import { useLoad } from "../app/load";

export function useBucketTrail(bucketId: string): { href: string; label: string }[] {
  const bucket = useLoad(`bucket ${bucketId}`, (signal) => getBucket(bucketId, signal), ["buckets"]);
  return [
    { href: "#/buckets", label: "Buckets" },
    { href: `#/buckets/${bucketId}`, label: bucket.data?.name ?? "Bucket" },
    { href: `#/buckets/${bucketId}/sources`, label: "Sources" },
  ];
}
