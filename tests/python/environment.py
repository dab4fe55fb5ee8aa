"""Virtual environments for tests that need packages. Requires only Python."""
import hashlib
import os
import shutil
import subprocess
import sys


def install(environment, requirements):
    """The scripts of a virtual environment with exactly the packages of a requirements.txt."""
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
