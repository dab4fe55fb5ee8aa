"""InfluxDB's clients for Python, and what Telegraf's output sends."""
import gzip
import http.client
import math
import os
import re
import sys
import threading
import time
import tomllib
import urllib.parse
from collections.abc import Iterator

from agent import EXAMPLES, Agent, Outcome, Sample, Sent

POINTS_PER_SECOND = 200
UNITS_NS = {"ns": 1, "n": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
TELEGRAF_INTERVAL_S = 0.5
TELEGRAF_BATCH = 1000
TELEGRAF_CPUS = 16


def decoded(line: str, unit_ns: int) -> Iterator[tuple[Sample, float | str | bool]]:
    """The samples of a line without escapes outside of strings."""
    series, fields, at = re.fullmatch(r'(\S+) ((?:[^" ]|"[^"]*")+) (\d+)', line).groups()  # type: ignore[union-attr]
    source, *tags = series.split(",")
    dimensions = frozenset((name, value) for name, value in (tag.split("=") for tag in tags))
    for name, value in re.findall(r'([^=,]+)=("[^"]*"|[^,]+)', fields):
        yield Sample(source, dimensions, int(at) * unit_ns, name), decoded_value(value)


def decoded_value(text: str) -> float | str | bool:
    if text.startswith('"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return float(text.rstrip("iu"))


class LineAgent(Agent):
    """An agent whose requests are lines: the wire tells what was sent."""

    def sent(self) -> Sent:
        sent = Sent()
        for exchange in self.wire.exchanges:
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(exchange.target).query))
            zipped = exchange.headers.get("Content-Encoding") == "gzip"
            text = (gzip.decompress(exchange.body) if zipped else exchange.body).decode()
            for line in text.splitlines():
                for sample, value in decoded(line, UNITS_NS[query.get("precision", "ns")]):
                    sent.add(sample, value, exchange.is_acknowledged)
        return sent

    def check(self) -> Outcome:
        return self.count_all(self.sent())


class Client(LineAgent):
    """A program of examples/influxdb-client, which says how many points it knows to be stored."""

    program: str

    def start(self) -> None:
        environment = {**os.environ, "TIDEWATCH_URL": self.wire.url, "TIDEWATCH_KEY": self.bucket.write}
        program = EXAMPLES / "influxdb-client" / self.program
        length = (str(self.seconds), str(POINTS_PER_SECOND))
        self.process = self.run("client", sys.executable, "-B", program, *length, environment=environment)

    def finish(self) -> None:
        self.process.process.wait(self.seconds + 120)
        self.process.wait()

    def check(self) -> Outcome:
        outcome = super().check()
        [told] = map(int, re.findall(r"^(\d+) points stored$", self.process.text(), re.MULTILINE))
        # Each point has two fields, one of them its number.
        numbers = sorted(value for sample, value in self.sent().values.items() if sample.field == "number")
        if outcome.stored != 2 * told or numbers != list(range(told)):
            outcome.faults.append(f"the client was told of {told} points, {outcome.stored / 2} are stored")
        return outcome


class InfluxDb2(Client):
    name, program = "influxdb-client", "send.py"


class InfluxDb1(Client):
    name, program = "influxdb", "send_v1.py"


class Telegraf(LineAgent):
    """Sends what Telegraf's output for InfluxDB 2 sends for the configuration of examples/telegraf.

    No package has Telegraf itself. By its rules, what was not acknowledged stays in the buffer and is sent again.
    """

    name = "telegraf (its requests)"

    def start(self) -> None:
        [output] = tomllib.loads(self.example("telegraf/telegraf.conf", {}).read_text())["outputs"]["influxdb_v2"]
        [url] = output["urls"]
        self.address = urllib.parse.urlsplit(url).netloc
        names = urllib.parse.urlencode({"bucket": output["bucket"], "org": output["organization"]})
        self.target = f"/api/v2/write?{names}"
        self.headers = {
            "User-Agent": "Telegraf/1.36.0 Go/1.25.0", "Authorization": f"Token {output['token']}",
            "Content-Encoding": "gzip", "Content-Type": "text/plain; charset=utf-8", "Accept-Encoding": "gzip",
        }
        self.buffer: list[str] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def finish(self) -> None:
        self.ended.set()
        self.thread.join(120)
        assert not self.thread.is_alive() and not self.buffer, f"{len(self.buffer)} lines were not acknowledged"

    def work(self) -> None:
        failures, give_up = 0, math.inf
        while not self.ended.is_set() or (self.buffer and time.monotonic() < give_up):
            if self.ended.is_set():
                give_up = min(give_up, time.monotonic() + 60)
            else:
                self.gather()
            batch = self.buffer[:TELEGRAF_BATCH]
            if self.write(batch):
                del self.buffer[: len(batch)]
                failures = 0
            else:
                failures += 1
            self.ended.wait(TELEGRAF_INTERVAL_S) or threading.Event().wait(failures / 10)

    def gather(self) -> None:
        at = time.time_ns()
        for cpu in range(TELEGRAF_CPUS):
            idle = 90 + math.sin(at / 1e9 + cpu)
            self.buffer.append(f"cpu,cpu=cpu{cpu},host=web-1 usage_idle={idle},usage_user={100 - idle} {at}")
        self.buffer.append(f"mem,host=web-1 available={at % 10**10}i,available_percent=41.25 {at}")
        self.buffer.append(f'system,host=web-1 n_cpus={TELEGRAF_CPUS}i,uptime_format="1 day, 2:03" {at}')

    def write(self, batch: list[str]) -> bool:
        body = gzip.compress("".join(f"{line}\n" for line in batch).encode())
        connection = http.client.HTTPConnection(self.address, timeout=5)
        try:
            connection.request("POST", self.target, body, self.headers)
            return connection.getresponse().status == 204
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
