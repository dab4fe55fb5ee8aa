"""What the agents have in common: processes, points, and the count of what became of them."""
import collections
import concurrent.futures
import ctypes
import dataclasses
import datetime
import functools
import pathlib
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from service import Bucket, Service
from wire import Wire

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
# The address and the keys that the files of examples/ have in them.
ADDRESS = "http://127.0.0.1:8080"
WRITE_KEY = "svc_w_…"
STOP_SECONDS = 120
# Starts all processes: one ends with the thread that started it, and this thread ends with the script.
STARTER = concurrent.futures.ThreadPoolExecutor(1)


@dataclasses.dataclass(frozen=True)
class Sample:
    """One field of a point, without its value."""

    source: str
    dimensions: frozenset[tuple[str, str]]
    at_ns: int
    field: str


@dataclasses.dataclass
class Sent:
    """What an agent has sent, and what of it was acknowledged."""

    values: dict[Sample, float | str | bool] = dataclasses.field(default_factory=dict)
    acknowledged: set[Sample] = dataclasses.field(default_factory=set)

    def add(self, sample: Sample, value: float | str | bool, is_acknowledged: bool) -> None:
        # A source keeps the first of two values at one time: senders must not make such.
        assert self.values.setdefault(sample, value) == value, f"sent with two values: {sample}"
        if is_acknowledged:
            self.acknowledged.add(sample)


@dataclasses.dataclass
class Outcome:
    """The count at the end. Samples are fields of points."""

    sent: int
    acknowledged: int
    stored: int
    lost: int
    doubled: int
    faults: list[str]


class Running:
    """A process that ends with this script, and its output in a file."""

    def __init__(
        self, command: Sequence[str | pathlib.Path], output: pathlib.Path, environment: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.output = output
        self.name = pathlib.Path(command[0]).name
        with open(output, "wb") as file:
            start = functools.partial(
                subprocess.Popen, command, env=environment, stdin=stdin, stdout=file, stderr=file, cwd=output.parent,
                preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))
            self.process: subprocess.Popen[bytes] = STARTER.submit(start).result()

    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def wait(self) -> None:
        """Waits until it ends by itself."""
        code = self.process.wait(STOP_SECONDS)
        assert code == 0, f"{self.name} ended with {code}:\n{self.text()[-2000:]}"

    def terminate(self) -> None:
        self.process.terminate()
        self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Agent:
    """One agent with a bucket, and a wire to the server."""

    name: str

    def __init__(self, service: Service, directory: pathlib.Path, seconds: float) -> None:
        self.service, self.seconds = service, seconds
        self.directory = directory / type(self).__name__
        self.directory.mkdir()
        self.bucket = Bucket(service, self.name)
        self.wire = Wire(service)
        self.running: list[Running] = []

    def start(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Returns when it sends no more, and has been answered all that it waits for."""
        raise NotImplementedError

    def check(self) -> Outcome:
        raise NotImplementedError

    def run(self, name: str, *command: str | pathlib.Path, **options: object) -> Running:
        running = Running(command, self.directory / f"{name}.log", **options)  # type: ignore[arg-type]
        self.running.append(running)
        return running

    def stop(self) -> None:
        for running in self.running:
            if running.process.poll() is None:
                running.kill()
        self.wire.close()

    def example(self, path: str, changes: Mapping[str, str]) -> pathlib.Path:
        """A file of examples/, with the address of the wire, the key, and further changes."""
        source = EXAMPLES / path
        text = source.read_text()
        for before, after in {ADDRESS: self.wire.url, WRITE_KEY: self.bucket.write, **changes}.items():
            assert before in text or before in (ADDRESS, WRITE_KEY), f"{path} has no {before}"
            text = text.replace(before, after)
        place = self.directory / source.name
        place.write_text(text)
        return place

    def count(self, sent: Sent, rows: Iterable[tuple[Sample, float | str | bool]] | None = None) -> Outcome:
        """Compares what was sent with what is stored."""
        stored: collections.Counter[Sample] = collections.Counter()
        faults = []
        for sample, value in rows if rows is not None else samples(self.bucket):
            stored[sample] += 1
            if sample not in sent.values:
                faults.append(f"stored, and never sent: {sample} {value}")
            elif sent.values[sample] != value:
                faults.append(f"{sent.values[sample]} was sent, {value} is stored: {sample}")
        lost = [sample for sample in sent.acknowledged if sample not in stored]
        doubled = [sample for sample, times in stored.items() if times > 1]
        faults += [f"acknowledged, and lost: {sample}" for sample in lost]
        faults += [f"stored {stored[sample]} times: {sample}" for sample in doubled]
        return Outcome(len(sent.values), len(sent.acknowledged), stored.total(), len(lost), len(doubled), faults)

    def count_all(self, sent: Sent) -> Outcome:
        """The same of an agent that repeats until it is acknowledged: nothing may be missing."""
        missing = sent.values.keys() - sent.acknowledged
        outcome = self.count(sent)
        outcome.faults += [f"given up: {sample}" for sample in missing]
        return outcome


def samples(bucket: Bucket) -> Iterable[tuple[Sample, float | str | bool]]:
    """The fields of all points of a bucket."""
    names = {identifier: source["name"] for identifier, source in bucket.sources().items()}
    for row in bucket.rows():
        dimensions = frozenset((name, as_text(value)) for name, value in row.get("metadata", {}).items())
        at_ns = nanoseconds(row["timestamp"])
        for field, value in row["values"].items():
            yield Sample(names[row["dataSourceId"]], dimensions, at_ns, field), value


def as_text(value: object) -> str:
    """A dimension's value as the service writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def nanoseconds(timestamp: str) -> int:
    """ISO 8601 in UTC, with up to nine digits."""
    whole, fraction = re.fullmatch(r"([^.Z]+)(?:\.(\d+))?Z", timestamp).groups()  # type: ignore[union-attr]
    moment = datetime.datetime.fromisoformat(whole + "+00:00")
    return int(moment.timestamp()) * 1_000_000_000 + int((fraction or "").ljust(9, "0"))
