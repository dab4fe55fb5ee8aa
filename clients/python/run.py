#!/usr/bin/env python3
"""Builds the wheel of the package, installs it, and tests it against the real server.

usage: run.py --binary BINARY --environment DIR [-- OPTIONS OF PYTEST]

Below DIR: `tools`, a virtual environment with the packages of requirements.txt, made when they change; `dist`, the
wheel; `plain`, a new environment with nothing but the wheel and what it depends on. smoke.py runs in `plain`; mypy,
ruff and pytest in `tools`, with the installed wheel. Requires only Python.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "python"))

import environment as environments
from server import Server


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--environment", required=True, type=pathlib.Path)
    parser.add_argument("more", nargs="*", help="for pytest, behind --")
    arguments = parser.parse_args()
    binary, directory = arguments.binary.resolve(strict=True), arguments.environment.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    tools = environments.install(directory / "tools", HERE / "requirements.txt")
    wheel = build(tools, directory / "dist")
    smoke(plain(directory / "plain", wheel), binary)
    install(tools, wheel, "--force-reinstall", "--no-deps")
    python, caches = tools / "python", directory / "caches"
    run(python, "-m", "mypy", "--cache-dir", caches / "mypy", "src", "tests", "examples")
    # As users' own code is checked: with the types of the wheel, and without the settings of this directory.
    run(python, "-m", "mypy", "--config-file=", "--strict", "--cache-dir", caches / "mypy-wheel", "examples")
    for command in (["check"], ["format", "--check"]):
        run(tools / "ruff", *command, "--cache-dir", caches / "ruff", ".")
    run(python, "-m", "pytest", f"--binary={binary}", "-o", f"cache_dir={caches / 'pytest'}", *arguments.more)
    print(f"python-package: {wheel.name} in {time.monotonic() - began:.0f} s")


def build(tools, dist):
    """Makes the wheel; its path."""
    shutil.rmtree(dist, ignore_errors=True)
    run(tools / "hatchling", "build", "-t", "wheel", "-d", dist)
    [wheel] = dist.glob("*.whl")
    return wheel


def plain(environment, wheel):
    """The scripts of a new environment with the wheel."""
    shutil.rmtree(environment, ignore_errors=True)
    if environments.create(environment) != 0:
        sys.exit(f"python3 -m venv {environment} failed")
    install(environment / "bin", wheel, "--constraint", HERE / "requirements.txt")
    return environment / "bin"


def install(scripts, wheel, *options):
    pip = [scripts / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run(*pip, *options, wheel)


def smoke(scripts, binary):
    with tempfile.TemporaryDirectory(prefix="tidewatch-python-") as directory:
        server = Server(binary, pathlib.Path(directory))
        try:
            # Away from the sources, which are not to be found in place of the wheel.
            run(scripts / "python", HERE / "tests" / "smoke.py", server.base, cwd=directory)
        finally:
            faults = server.stop()
    if faults:
        sys.exit("\n".join(faults))


def run(*command, cwd=HERE):
    outcome = subprocess.run(command, cwd=cwd, check=False)
    if outcome.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {outcome.returncode}")


if __name__ == "__main__":
    main()
