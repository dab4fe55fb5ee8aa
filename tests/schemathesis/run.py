#!/usr/bin/env python3
"""Runs Schemathesis against the real server: every operation of /api/docs, with valid and invalid requests.

usage: run.py --binary BINARY --environment DIR [--seed N]

Installs the packages of requirements.txt into the virtual environment DIR if they are missing, starts BINARY on a free
port with a new data directory, prepares organizations (prepare.py), and runs all checks of Schemathesis. Fails on a
violation, a server error, a crash, or fewer than 2,000 cases. Requires only Python.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import environment as environments
import prepare
from server import Server

CASES_MIN = 2_000
OPERATOR_TOKEN = "operator-of-this-test"


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
    scripts = environments.install(arguments.environment.resolve(), HERE / "requirements.txt")
    binary = arguments.binary.resolve(strict=True)
    # If this run is terminated, the server must end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidewatch-schemathesis-") as directory:
        directory = pathlib.Path(directory)
        server = Server(binary, directory, {"TIDEWATCH_OPERATOR__TOKEN": OPERATOR_TOKEN})
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
