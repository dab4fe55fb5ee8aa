#!/usr/bin/env python3
"""Runs Schemathesis against the real server: every operation of /api/docs, with valid and invalid requests.

usage: run.py --binary BINARY --environment DIR [--seed N]

Installs the packages of requirements.txt into the virtual environment DIR if they are missing, starts BINARY on a free
port with a new data directory, prepares organizations (prepare.py), and runs all checks of Schemathesis. Fails on a
violation, a server error, a crash, or fewer than 2,000 cases. Requires only Python.
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import prepare

HERE = pathlib.Path(__file__).resolve().parent
CASES_MIN = 2_000
OPERATOR_TOKEN = "operator-of-this-test"


def install(environment):
    """The scripts of a virtual environment with exactly the packages of requirements.txt."""
    requirements = HERE / "requirements.txt"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    marker = environment / "installed"
    scripts = environment / "bin"
    if marker.exists() and marker.read_text() == wanted:
        return scripts
    shutil.rmtree(environment, ignore_errors=True)
    if create(environment) != 0:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            sys.exit("python3 -m venv does not work here: install the Debian package python3-venv")
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "python3-venv"], check=True)
        shutil.rmtree(environment, ignore_errors=True)
        if create(environment) != 0:
            sys.exit("python3 -m venv does not work here, although python3-venv is installed")
    pip = [scripts / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "-r", requirements]
    subprocess.run(pip, check=True)
    marker.write_text(wanted)
    return scripts


def create(environment):
    return subprocess.run([sys.executable, "-m", "venv", environment], check=False).returncode


class Server:
    """The running binary with a new data directory."""

    def __init__(self, binary, directory):
        self.log_path = directory / "server.log"
        settings = {
            "TIDEWATCH_SERVER__LISTEN": "127.0.0.1:0",
            "TIDEWATCH_STORAGE__DATA_DIR": str(directory / "data"),
            "TIDEWATCH_ACCOUNTS__DEFAULT_PLAN": "Enterprise",
            # All cases come from one address.
            "TIDEWATCH_ACCOUNTS__SIGNUPS_PER_HOUR_MAX": "0",
            "TIDEWATCH_OPERATOR__TOKEN": OPERATOR_TOKEN,
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


def cases_of(report):
    """The number of requests, and the count of each phase and status class."""
    cases, phases, statuses = 0, {}, {}
    with open(report, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            for phase, status in sent(event):
                cases += 1
                phases[phase] = phases.get(phase, 0) + 1
                statuses[status] = statuses.get(status, 0) + 1
    return cases, phases, statuses


def sent(event):
    finished = event.get("ScenarioFinished")
    if finished is None:
        return
    for interaction in (finished.get("recorder") or {}).get("interactions", {}).values():
        response = interaction.get("response")
        yield finished["phase"], str(response["status_code"])[0] + "xx" if response else "none"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--environment", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1, help="0 draws one")
    parser.add_argument("more", nargs="*", help="for Schemathesis, behind --")
    arguments = parser.parse_args()
    arguments.seed = arguments.seed or random.SystemRandom().randrange(2**31)
    scripts = install(arguments.environment.resolve())
    binary = arguments.binary.resolve(strict=True)
    # If this run is terminated, the server must end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidewatch-schemathesis-") as directory:
        directory = pathlib.Path(directory)
        server = Server(binary, directory)
        try:
            world = prepare.world(server.base)
            (directory / "world.json").write_text(json.dumps(world))
            report = directory / "report.ndjson"
            command = [
                scripts / "schemathesis", "--config-file", HERE / "schemathesis.toml", "run", "--url", server.base,
                "--seed", str(arguments.seed), "--report-ndjson-path", report, *arguments.more, f"{server.base}/api/docs",
            ]
            print(f"schemathesis: seed {arguments.seed}", flush=True)
            environment = {
                **os.environ,
                "SCHEMATHESIS_HOOKS": "hooks",
                "PYTHONPATH": str(HERE),
                "PYTHONDONTWRITEBYTECODE": "1",
                "TIDEWATCH_WORLD": str(directory / "world.json"),
                "TIDEWATCH_KEY": world["adminKey"],
                "TIDEWATCH_TOKEN": world["token"],
                "TIDEWATCH_OPERATOR_TOKEN": OPERATOR_TOKEN,
            }
            outcome = subprocess.run(command, env=environment, cwd=directory, check=False).returncode
        finally:
            faults = server.stop()
        cases, phases, statuses = cases_of(report) if report.exists() else (0, {}, {})
    if outcome != 0:
        faults.append(f"schemathesis ended with {outcome}; again with --seed {arguments.seed}")
    if cases < CASES_MIN:
        faults.append(f"{cases} cases are fewer than {CASES_MIN}")
    took = time.monotonic() - began
    print(f"schemathesis: {cases} cases in {took:.0f} s, seed {arguments.seed}; {phases}; answers {statuses}")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
