#!/usr/bin/env python3
"""Compares answers of the real server with those of pandas: random questions around clock changes, and real series.

usage: run.py --binary BINARY --environment DIR [--seed N] [--questions N]

Installs the packages of requirements.txt into the virtual environment DIR if they are missing, starts BINARY on a free
port with a new data directory, and runs check.py. Requires only Python.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import environment as environments
from server import Server


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--environment", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1, help="0 draws one")
    parser.add_argument("--questions", type=int, default=25, help="for each zone")
    arguments = parser.parse_args()
    seed = arguments.seed or random.SystemRandom().randrange(2**31)
    scripts = environments.install(arguments.environment.resolve(), HERE / "requirements.txt")
    with tempfile.TemporaryDirectory(prefix="tidewatch-pandas-") as directory:
        server = Server(arguments.binary.resolve(strict=True), pathlib.Path(directory))
        try:
            check = [scripts / "python", HERE / "check.py", server.base, "--data", HERE.parent / "data"]
            options = ["--seed", str(seed), "--questions", str(arguments.questions)]
            outcome = subprocess.run([*check, *options], check=False).returncode
        finally:
            faults = server.stop()
    if outcome != 0:
        faults.append(f"check.py ended with {outcome}; again with --seed {seed}")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
