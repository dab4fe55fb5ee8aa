"""The server as a process, which tests kill and start again."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

OPERATOR_TOKEN = "operator-of-this-test-operator-of-this-test"
START_SECONDS = 60


class Server:
    """The binary with a data directory of its own, on one port over all its lives."""

    def __init__(self, binary: Path, directory: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._binary = binary
        self._log = directory / "server.log"
        self._settings = {
            "TIDEWATCH_SERVER__LISTEN": f"127.0.0.1:{port}",
            "TIDEWATCH_STORAGE__DATA_DIR": str(directory / "data"),
            "TIDEWATCH_ACCOUNTS__DEFAULT_PLAN": "Enterprise",
            "TIDEWATCH_ACCOUNTS__SIGNUPS_PER_HOUR_MAX": "0",
            "TIDEWATCH_OPERATOR__TOKEN": OPERATOR_TOKEN,
            "TIDEWATCH_WEBHOOKS__ALLOW_PRIVATE_NETWORKS": "true",
        }
        self._process: subprocess.Popen[str] | None = None
        self._drain: threading.Thread | None = None

    def start(self) -> None:
        """Returns when it listens. What it logs until then is read from a pipe, the rest goes to a file."""
        self._process = subprocess.Popen(
            [self._binary, "serve"],
            env={**os.environ, **self._settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        with self._log.open("a") as log:
            for line in self._process.stdout:
                log.write(line)
                if re.search(r"listening on http", line):
                    break
            else:
                raise AssertionError(f"the server did not start:\n{self._log.read_text()}")
        self._drain = drain(self._process, self._log)

    def _join(self) -> None:
        """The pipe ends with the process."""
        if self._drain is not None:
            self._drain.join()

    def kill(self) -> None:
        """As `kill -9`."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._join()

    def stop(self) -> list[str]:
        """Stops it; the faults in its log and its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=START_SECONDS)
        self._join()
        faults = [] if code == 0 else [f"the server ended with {code}"]
        lines = self._log.read_text(errors="replace").splitlines()
        return faults + [line for line in lines if "panic" in line or " ERROR " in line]


def drain(process: subprocess.Popen[str], log: Path) -> threading.Thread:
    """Goes on to write the process's output to the log, so that it never waits for a reader."""

    def copy() -> None:
        assert process.stdout is not None
        with log.open("a") as file, process.stdout:
            for line in process.stdout:
                file.write(line)
                file.flush()

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread
