// Measures made-up requests with the SDK of OpenTelemetry, whose settings are in the environment: see README.md.
//
// usage: OTEL_EXPORTER_OTLP_ENDPOINT=… OTEL_EXPORTER_OTLP_HEADERS=… node send.js [SECONDS]
import { setTimeout as sleep } from "node:timers/promises";

import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";

const { OTEL_SERVICE_NAME = "shop", OTEL_METRIC_EXPORT_INTERVAL = "60000" } = process.env;
const interval = Number(OTEL_METRIC_EXPORT_INTERVAL);

const provider = new MeterProvider({
  resource: resourceFromAttributes({ "service.name": OTEL_SERVICE_NAME }),
  readers: [
    new PeriodicExportingMetricReader({
      exporter: new OTLPMetricExporter(),
      exportIntervalMillis: interval,
      exportTimeoutMillis: Math.min(interval, 30_000),
    }),
  ],
});
const meter = provider.getMeter("shop");
const requests = meter.createCounter("shop.requests", { description: "Requests that were answered" });
const latency = meter.createHistogram("shop.latency", { unit: "ms", description: "Time until the answer" });
meter.createObservableGauge("shop.carts").addCallback((result) => {
  result.observe(Math.floor(Math.random() * 100), { region: "north" });
});

const end = Date.now() + Number(process.argv[2] ?? 60) * 1000;
while (Date.now() < end) {
  const path = Math.random() < 0.5 ? "/" : "/basket";
  requests.add(1, { path, status: Math.random() < 0.9 ? 200 : 500 });
  latency.record(Math.random() * 120, { path });
  await sleep(10);
}
await provider.shutdown();
