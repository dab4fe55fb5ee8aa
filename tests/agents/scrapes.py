"""A Prometheus that scrapes node exporter or collectd, and sends to the server what it scrapes."""
import functools
import json
import math
import pathlib
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator

import grafana
from agent import Agent, Outcome, Sample, Sent, samples
from service import free_port, is_soon, wait_until

# Debian keeps collectd off the path of users.
COLLECTD = shutil.which("collectd") or "/usr/sbin/collectd"
INTERVAL_S = 1
SHARDS_APART_S = 10
SENDING_SECONDS = 90
# Prometheus sends help and types once a minute, first after a minute.
HELP_AFTER_S = 75
# Prometheus counts time in milliseconds.
MS_NS = 1_000_000


class Scraped(Agent):
    """A Prometheus with a file of examples/. At the end it is asked itself what it had to send."""

    configuration: str
    interval: str
    exporter_address: str
    questions: tuple[str, ...]

    def start(self) -> None:
        exporter = f"127.0.0.1:{free_port()}"
        self.start_exporter(exporter)
        wait_until(functools.partial(is_up, f"http://{exporter}/metrics"), 60, f"{self.name}: the exporter answers")
        changes = {self.exporter_address: exporter, f"interval: {self.interval}": f"interval: {INTERVAL_S}s"}
        config = self.example(self.configuration, changes)
        self.address = f"127.0.0.1:{free_port()}"
        options = (f"--storage.tsdb.path={self.directory / 'tsdb'}", f"--web.listen-address={self.address}")
        self.began = time.time()
        self.prometheus = self.run("prometheus", "prometheus", f"--config.file={config}", *options)
        ready = functools.partial(is_up, f"http://{self.address}/-/ready")
        wait_until(ready, 60, f"{self.name}: Prometheus is ready")

    def start_exporter(self, address: str) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        # The time up to which all must have come.
        self.until = time.time()
        # What is missing then is counted as lost.
        is_soon(self.has_sent, SENDING_SECONDS)

    def has_sent(self) -> bool:
        text = read(f"http://{self.address}/metrics")
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        own = {name.split("{")[0]: float(value) for name, value in lines}
        # Not there before the first request.
        newest = own.get("prometheus_remote_storage_queue_highest_sent_timestamp_seconds", 0.0)
        # The newest of all shards; each sends what it has after five seconds.
        return newest > self.until + (0 if own.get("prometheus_remote_storage_shards") == 1 else SHARDS_APART_S)

    def check(self) -> Outcome:
        end = self.until
        sent = Sent()
        for sample, value in self.own_samples(end):
            sent.add(sample, value, True)
        outcome = self.count(sent, self.stored_samples(end))
        outcome.faults += self.compare(end)
        self.prometheus.terminate()
        return outcome

    def own_samples(self, end: float) -> Iterator[tuple[Sample, float]]:
        """All that Prometheus has scraped."""
        window = math.ceil(end - self.began) + 5
        query = {"query": f'{{__name__=~".+"}}[{window}s]', "time": repr(end)}
        found = json.loads(read(f"http://{self.address}/api/v1/query?{urllib.parse.urlencode(query)}"))
        for series in found["data"]["result"]:
            name = series["metric"].pop("__name__")
            dimensions = frozenset(series["metric"].items())
            for at, value in series["values"]:
                # Other numbers are not stored.
                if math.isfinite(float(value)):
                    yield Sample(name, dimensions, round(at * 1000) * MS_NS, "value"), float(value)

    def stored_samples(self, end: float) -> Iterator[tuple[Sample, float | str | bool]]:
        return ((sample, value) for sample, value in samples(self.bucket) if sample.at_ns <= end * 1e9)

    def compare(self, end: float) -> list[str]:
        """Questions as Grafana asks them, to both."""
        grafana_source = grafana.Source(self.service.base, self.bucket.read)
        start = self.between_scrapes(end)
        faults = []
        for question in self.questions:
            parameters = {"query": question, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": "1"}
            own = json.loads(read(f"http://{self.address}/api/v1/query_range?{urllib.parse.urlencode(parameters)}"))
            faults += grafana.differences(question, own["data"], grafana_source.ask("query_range", parameters))
        faults += grafana_source.faults(sorted({sample.source for sample, _ in self.own_samples(end)}), start, end)
        return faults

    def between_scrapes(self, end: float) -> float:
        """A start whose steps are far from all samples.

        Prometheus 3, whose rules tidewatch follows, and Debian's 2 differ in whether a range has a sample at its very
        beginning. Ranges and steps are whole seconds.
        """
        taken = {sample.at_ns // MS_NS % 1000 for sample, _ in self.own_samples(end)}

        def distance(ms: int) -> int:
            return min(min((ms - other) % 1000, (other - ms) % 1000) for other in taken)

        return math.ceil(self.began) + max(range(1000), key=distance) / 1000


class NodeExporter(Scraped):
    name = "prometheus"
    configuration, interval, exporter_address = "prometheus/prometheus.yml", "15s", "127.0.0.1:9100"
    questions = (
        "up",
        "node_cpu_seconds_total",
        "sum by (mode) (rate(node_cpu_seconds_total[10s]))",
        '100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[10s])))',
        "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
        "max_over_time(node_load1[5s])",
        "irate(node_context_switches_total[5s])",
        'topk(2, sum by (mode) (node_cpu_seconds_total))',
        'count by (job) ({__name__=~"node_cpu_.+"})',
        'increase(node_intr_total[10s]) > 0',
        'label_replace(node_uname_info, "short", "$1", "release", "([0-9]+).*")',
        "scrape_samples_scraped - scrape_samples_post_metric_relabeling",
        "time() - node_boot_time_seconds",
        "absent(node_nothing)",
    )

    def start_exporter(self, address: str) -> None:
        self.run("node-exporter", "prometheus-node-exporter", f"--web.listen-address={address}")

    def check(self) -> Outcome:
        families = json.loads(read(f"http://{self.address}/api/v1/metadata"))["data"]
        outcome = super().check()
        sources = self.bucket.sources().values()
        found = {source["name"]: source["description"] for source in sources if "description" in source}
        # A request with many describes some of them, and the one of the next minute others.
        if self.seconds > HELP_AFTER_S and not found:
            outcome.faults.append("no source is described by a metric's help")
        for name, description in found.items():
            if description not in (family["help"] for family in families.get(name, [])):
                outcome.faults.append(f"the help of {name} is {description!r}")
        return outcome


class Collectd(Scraped):
    name = "collectd"
    configuration, interval, exporter_address = "collectd/prometheus.yml", "10s", "127.0.0.1:9103"
    questions = (
        "up", "collectd_load_shortterm", "sum by (type) (rate(collectd_cpu_total[10s]))",
        "sum without (memory) (collectd_memory)",
    )

    def start_exporter(self, address: str) -> None:
        port = address.rsplit(":", 1)[1]
        changes = {'Port "9103"': f'Port "{port}"', "Interval 10": f"Interval {INTERVAL_S}"}
        config = self.example("collectd/collectd.conf", changes)
        pid: pathlib.Path = self.directory / "collectd.pid"
        self.run("collectd", COLLECTD, "-f", "-C", config, "-P", pid)


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def is_up(url: str) -> bool:
    try:
        return bool(read(url))
    except OSError:
        return False
