"""The SDKs of OpenTelemetry, in Python (Protobuf) and JavaScript (JSON), and the collector's way of sending."""
import gzip
import os
import pathlib
import re
import sys
import urllib.parse
from collections.abc import Iterator
from typing import Any

import yaml
from agent import EXAMPLES, Agent, Outcome, Sample, Sent, as_text
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

INTERVAL_MS = 500
# For a request and its repetitions.
PATIENCE_S = 60
# Of the resource's attributes, those that become dimensions.
OF_RESOURCE = re.compile(r"service\.|host\.name$|k8s\.")


def attributes(pairs: Any) -> dict[str, str]:
    values = ((pair.key, pair.value) for pair in pairs)
    return {key: as_text(getattr(value, value.WhichOneof("value"))) for key, value in values}


def decoded(message: ExportMetricsServiceRequest) -> Iterator[tuple[Sample, float]]:
    for resource_metrics in message.resource_metrics:
        resource = attributes(resource_metrics.resource.attributes)
        kept = {key: value for key, value in resource.items() if OF_RESOURCE.match(key)}
        for scope in resource_metrics.scope_metrics:
            for metric in scope.metrics:
                for point in getattr(metric, str(metric.WhichOneof("data"))).data_points:
                    dimensions = kept | attributes(point.attributes)
                    yield from decoded_point(metric.name, dimensions, point)


def decoded_point(name: str, dimensions: dict[str, str], point: Any) -> Iterator[tuple[Sample, float]]:
    series, at = frozenset(dimensions.items()), point.time_unix_nano
    if not hasattr(point, "bucket_counts"):
        yield Sample(name, series, at, "value"), float(getattr(point, point.WhichOneof("value")))
        return
    for field in ("count", "sum", "min", "max"):
        yield Sample(name, series, at, field), float(getattr(point, field))
    count, bounds = 0, [*map(as_text, point.explicit_bounds), "+Inf"]
    for bound, more in zip(bounds, point.bucket_counts, strict=True):
        count += more
        yield Sample(f"{name}.bucket", frozenset({**dimensions, "le": bound}.items()), at, "value"), float(count)


class Sdk(Agent):
    """A program with the SDK. It gives up an export that fails for too long: what was acknowledged must be there."""

    counter: str
    # The SDKs count the same setting in different units.
    timeout: int

    def settings(self) -> dict[str, str]:
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.wire.url,
            "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=" + urllib.parse.quote(f"Bearer {self.bucket.write}"),
        }

    def command(self) -> list[Any]:
        raise NotImplementedError

    def start(self) -> None:
        names = {
            "OTEL_SERVICE_NAME": "example", "OTEL_METRIC_EXPORT_INTERVAL": str(INTERVAL_MS),
            "OTEL_EXPORTER_OTLP_TIMEOUT": str(self.timeout),
        }
        environment = {**os.environ, **names, **self.settings()}
        self.process = self.run("sdk", *self.command(), str(self.seconds), environment=environment)

    def finish(self) -> None:
        self.process.process.wait(self.seconds + 120)
        self.process.wait()

    def check(self) -> Outcome:
        sent = Sent()
        for exchange in self.wire.exchanges:
            assert urllib.parse.urlsplit(exchange.target).path == "/v1/metrics", exchange.target
            zipped = exchange.headers.get("Content-Encoding") == "gzip"
            body = gzip.decompress(exchange.body) if zipped else exchange.body
            message = ExportMetricsServiceRequest()
            if exchange.headers["Content-Type"] == "application/json":
                json_format.Parse(body, message, ignore_unknown_fields=True)
            else:
                message.ParseFromString(body)
            for sample, value in decoded(message):
                sent.add(sample, value, exchange.is_acknowledged)
        outcome = self.count(sent)
        self.check_totals(sent, outcome)
        return outcome

    def check_totals(self, sent: Sent, outcome: Outcome) -> None:
        """The last export, at the end of the program, has the totals: a counter loses nothing."""
        last = max(sample.at_ns for sample in sent.values if sample.source == self.counter)
        totals = [sample for sample in sent.values if sample.source == self.counter and sample.at_ns == last]
        missing = [sample for sample in totals if sample not in sent.acknowledged]
        outcome.faults += [f"a last total was not acknowledged: {sample}" for sample in missing]


class Python(Sdk):
    name, counter, timeout = "opentelemetry-python", "jobs.done", PATIENCE_S

    def command(self) -> list[Any]:
        return [sys.executable, "-B", EXAMPLES / "opentelemetry-python" / "send.py"]


class Collector(Python):
    """The same SDK with address, header and compression of the collector's exporter, which no package has."""

    name = "opentelemetry-collector (its requests)"

    def settings(self) -> dict[str, str]:
        text = (EXAMPLES / "opentelemetry-collector" / "collector.yaml").read_text()
        exporter = yaml.safe_load(text)["exporters"]["otlphttp"]
        values = {"${env:TIDEWATCH_URL}": self.wire.url, "${env:TIDEWATCH_KEY}": self.bucket.write}

        def filled(text: str) -> str:
            for name, value in values.items():
                text = text.replace(name, value)
            assert "$" not in text, text
            return text

        headers = (f"{name}={urllib.parse.quote(filled(value))}" for name, value in exporter["headers"].items())
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": filled(exporter["endpoint"]),
            "OTEL_EXPORTER_OTLP_HEADERS": ",".join(headers), "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        }


class JavaScript(Sdk):
    name, counter, timeout = "opentelemetry-js", "shop.requests", PATIENCE_S * 1000
    # The program, and its packages.
    node: pathlib.Path

    def command(self) -> list[Any]:
        return ["node", self.node / "send.js"]
