#!/usr/bin/env python3
"""Tests `tidewatch mcp` against the real server, by the official client of the Model Context Protocol.

usage: run.py --binary BINARY --environment DIR

Installs the packages of requirements.txt into the virtual environment DIR if they are missing, starts BINARY on a free
port with a new data directory, and runs session.py. Requires only Python.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import environment as environments
from server import Server

SESSION_SECONDS_MAX = 120


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--environment", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    scripts = environments.install(arguments.environment.resolve(), HERE / "requirements.txt")
    binary = arguments.binary.resolve(strict=True)
    with tempfile.TemporaryDirectory(prefix="tidewatch-mcp-") as directory:
        server = Server(binary, pathlib.Path(directory))
        try:
            command = [scripts / "python", "-B", HERE / "session.py", binary, server.base]
            outcome = subprocess.run(command, check=False, timeout=SESSION_SECONDS_MAX).returncode
        finally:
            faults = server.stop()
    if outcome != 0:
        faults.append(f"session.py ended with {outcome}")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
