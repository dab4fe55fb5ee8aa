#!/usr/bin/env python3
"""Has agents that people already have write to the real server, which is killed meanwhile, and counts their points.

usage: run.py --binary BINARY --environment DIR [AGENT ...]

Installs the packages of requirements.txt and of examples/opentelemetry-js below DIR if they are missing, and runs
session.py with BINARY and a new data directory. AGENTS_SECONDS (20) is how long the agents send, AGENTS_SEED repeats
the kills of a run that printed it. Requires Python, npm, and the Debian packages that the Makefile names.
"""
import argparse
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parent.parent / "examples" / "opentelemetry-js"
sys.path.insert(0, str(HERE.parent / "python"))

import environment as environments


def install_script(directory: pathlib.Path) -> None:
    """Copies the example for Node, with exactly the packages that its lock file names."""
    wanted = hashlib.sha256((SCRIPT / "package-lock.json").read_bytes()).hexdigest()
    marker = directory / "installed"
    if not marker.exists() or marker.read_text() != wanted:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SCRIPT / name, directory)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=directory, check=True)
        marker.write_text(wanted)
    shutil.copy(SCRIPT / "send.js", directory)


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--environment", required=True, type=pathlib.Path)
    parser.add_argument("agents", nargs="*", help="only these")
    arguments = parser.parse_args()
    directory = arguments.environment.resolve()
    scripts = environments.install(directory / "python", HERE / "requirements.txt")
    install_script(directory / "node")
    binary = arguments.binary.resolve(strict=True)
    with tempfile.TemporaryDirectory(prefix="tidewatch-agents-") as scratch:
        command = [scripts / "python", "-B", HERE / "session.py", binary, directory / "node", scratch]
        outcome = subprocess.run([*command, *arguments.agents], check=False).returncode
    if outcome != 0:
        sys.exit(f"session.py ended with {outcome}")


if __name__ == "__main__":
    main()
