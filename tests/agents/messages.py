"""Mosquitto, its own publishers, and the bridge with the configuration of examples/mqtt."""
import datetime
import os
import pathlib
import shutil
import subprocess
import threading
import time

from agent import Agent, Outcome, Running, Sample, Sent, nanoseconds
from service import free_port, is_soon, wait_until

# Debian keeps it off the path of users.
PROGRAM = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
TOPICS = (("north", "pump-7"), ("south", "pump-7"), ("north", "oven"))
MESSAGES_PER_SECOND = 50
DELIVERY_SECONDS = 90
BROKER_ADDRESS = "127.0.0.1:1883"


class Mqtt(Agent):
    """The bridge is killed once, too."""

    name = "mosquitto"
    binary: pathlib.Path

    def start(self) -> None:
        port = free_port()
        configuration = self.directory / "mosquitto.conf"
        configuration.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nlog_type subscribe\nuser root\n")
        broker = self.run("mosquitto", PROGRAM, "-c", configuration)
        address = ("-h", "127.0.0.1", "-p", str(port))
        self.config = self.example("mqtt/bridge.toml", {BROKER_ADDRESS: f"127.0.0.1:{port}"})
        self.bridge = self.start_bridge("bridge-1")
        # The session, which keeps messages from then on, begins with the first subscription.
        wait_until(lambda: "plant/+/+" in broker.text(), 60, "the bridge subscribes")
        self.messages: list[tuple[str, str, str, int]] = []
        self.publishers = [
            self.run(f"publisher-{number}", "mosquitto_pub", *address, "-q", "1", "-l", "-t", f"plant/{site}/{source}",
                     stdin=subprocess.PIPE)
            for number, (site, source) in enumerate(TOPICS)
        ]
        self.thread = threading.Thread(target=self.publish, daemon=True)
        self.thread.start()

    def start_bridge(self, log: str) -> Running:
        environment = {**os.environ, "TIDEWATCH_KEY": self.bucket.write}
        return self.run(log, self.binary, "bridge", "mqtt", "--config", self.config, environment=environment)

    def publish(self) -> None:
        middle, end = time.monotonic() + self.seconds / 2, time.monotonic() + self.seconds
        number, pause = 0, threading.Event()
        while time.monotonic() < end:
            if time.monotonic() >= middle:
                self.kill_bridge()
                middle = end
            for (site, source), publisher in zip(TOPICS, self.publishers, strict=True):
                at = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
                self.messages.append((site, source, at, number))
                line = f'{{"timestamp": "{at}", "temperature": {number}}}\n'
                publisher.process.stdin.write(line.encode())  # type: ignore[union-attr]
                publisher.process.stdin.flush()  # type: ignore[union-attr]
                number += 1
            pause.wait(1 / MESSAGES_PER_SECOND)

    def kill_bridge(self) -> None:
        self.bridge.kill()
        self.bridge = self.start_bridge("bridge-2")

    def finish(self) -> None:
        self.thread.join()
        for publisher in self.publishers:
            publisher.process.stdin.close()  # type: ignore[union-attr]
            # It ends when the broker has acknowledged all.
            publisher.wait()
        # What is missing then is counted as lost.
        is_soon(lambda: self.bucket.count() >= len(self.messages), DELIVERY_SECONDS)
        self.bridge.terminate()

    def check(self) -> Outcome:
        sent = Sent()
        for site, source, at, number in self.messages:
            sample = Sample(source, frozenset({("site", site)}), nanoseconds(at), "temperature")
            sent.add(sample, number, True)
        return self.count(sent)
