"""The server as a process, for tests in Python."""
import os
import re
import signal
import subprocess
import sys
import time


class Server:
    """The running binary with a new data directory."""

    def __init__(self, binary, directory, more=None):
        self.log_path = directory / "server.log"
        settings = {
            "TIDEWATCH_SERVER__LISTEN": "127.0.0.1:0",
            "TIDEWATCH_STORAGE__DATA_DIR": str(directory / "data"),
            "TIDEWATCH_ACCOUNTS__DEFAULT_PLAN": "Enterprise",
            # All requests come from one address.
            "TIDEWATCH_ACCOUNTS__SIGNUPS_PER_HOUR_MAX": "0",
            **(more or {}),
        }
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([binary, "serve"], env={**os.environ, **settings}, stdout=log, stderr=log)
        self.base = self.address()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def address(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"listening on http://(127\.0\.0\.1:\d+)\b", self.log())
            if found:
                return f"http://{found.group(1)}"
            time.sleep(0.05)
        self.process.kill()
        sys.exit(f"the server did not start:\n{self.log()}")

    def stop(self):
        """Stops the server; returns faults in its log and exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return ["the server did not stop at SIGTERM"]
        faults = [] if code == 0 else [f"the server ended with {code}"]
        return faults + [line for line in self.log().splitlines() if "panic" in line or " ERROR " in line]
