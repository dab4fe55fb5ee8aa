#!/usr/bin/env python3
"""Measures made-up jobs with the SDK of OpenTelemetry, whose settings are in the environment: see README.md.

usage: OTEL_EXPORTER_OTLP_ENDPOINT=… OTEL_EXPORTER_OTLP_HEADERS=… send.py [SECONDS]
"""
import random
import sys
import time

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader


def main(seconds: float = 60) -> None:
    provider = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
    meter = provider.get_meter("jobs")
    done = meter.create_counter("jobs.done", unit="{job}", description="Jobs that have ended")
    duration = meter.create_histogram("jobs.duration", unit="s", description="How long a job took")

    def waiting(_: CallbackOptions) -> list[Observation]:
        return [Observation(random.randrange(10), {"queue": queue}) for queue in ("fast", "slow")]

    meter.create_observable_gauge("jobs.waiting", [waiting], unit="{job}")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        queue, took = random.choice([("fast", 0.02), ("slow", 0.2)])
        done.add(1, {"queue": queue, "outcome": random.choice(["ok", "failed"])})
        duration.record(took * random.random(), {"queue": queue})
        time.sleep(0.01)
    provider.shutdown()


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
