/** What a bucket or the whole organization has taken in and what has fired. */
import { request } from "./client";
import type { Plan } from "./organization";

export const PERIODS = ["24h", "7d", "30d", "90d"] as const;
export type Period = (typeof PERIODS)[number];

export interface SourceAnalytics {
  _id: string;
  name: string;
  dataPointCount: number;
  lastDataPoint: string | null;
  avgValues: Record<string, number>;
  minValues: Record<string, number>;
  maxValues: Record<string, number>;
}

/** A UTC hour; hours without points are left out. */
export interface HourCount {
  hour: string;
  count: number;
}

export interface BucketAnalytics {
  bucket: { _id: string; name: string };
  period: Period;
  summary: {
    totalDataPoints: number;
    dataPointsInPeriod: number;
    avgDataPointsPerDay: number;
    dataSources: number;
    activeAlerts: number;
  };
  dataSourceStats: SourceAnalytics[];
  ingestionRate: { dataPointsPerHour: HourCount[] };
  alertActivity: { totalTriggered: number; byRule: { name: string; count: number }[] };
}

export interface Overview {
  organization: { _id: string; name: string };
  totals: { buckets: number; dataSources: number; dataPoints: number; alertRules: number; apiKeys: number };
  usage: {
    apiCallsThisMonth: number;
    apiCallsLimit: number | null;
    apiCallsPercentage: number | null;
    storageUsedBytes: number;
    storageUsedFormatted: string;
  };
  plan: Plan;
  recentActivity: {
    lastDataIngestion: string | null;
    lastAlertTriggered: string | null;
    dataPointsLast24h: number;
    alertsTriggeredLast24h: number;
  };
}

export const bucketAnalytics = (bucketId: string, period: Period, signal?: AbortSignal) =>
  request<{ analytics: BucketAnalytics }>("GET", `/api/analytics/buckets/${bucketId}?period=${period}`, {
    signal,
  }).then((a) => a.analytics);

export const overview = (signal?: AbortSignal) =>
  request<{ overview: Overview }>("GET", "/api/analytics/overview", { signal }).then((a) => a.overview);
