#!/usr/bin/env python3
"""Builds the packages of a binary; installs the Debian one, starts the installed server, and purges it.

usage: package.py --binary BINARY

The target is a directory with its own package database, users and programs, so that this machine is not changed.
Systemd is replaced by a script that records its calls; the server is started with the command and the user of the
installed unit. Without root or dpkg, the script prints the reason and succeeds.
"""
import argparse
import configparser
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

from disk import Unavailable
from server import Account, Client, Server

# Programs called by the scripts in packaging/debian.
PROGRAMS = ("sh", "getent", "install", "nologin", "rm", "rmdir", "useradd")
CONFIG, DATA, UNIT = "etc/tidewatch/config.toml", "var/lib/tidewatch", "usr/lib/systemd/system/tidewatch.service"
# The files of the demo's recorded series.
SERIES = ("ec2_cpu_utilization_24ae8d.csv", "machine_temperature_system_failure.csv", "nyc_taxi.csv")
STOP_SECONDS = 60


def may_change_root(place):
    """Whether chroot is permitted: tried in a child process, because root in a container may lack the right."""
    tried = subprocess.run([sys.executable, "-c", "import os, sys; os.chroot(sys.argv[1])", place],
                           capture_output=True, check=False)
    return os.geteuid() == 0 and tried.returncode == 0


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, check=False, text=True, **options)
    assert done.returncode == 0, f"{' '.join(command)}, exit {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def libraries(program):
    return re.findall(r"(/\S+) \(0x", run("ldd", program))


class Root:
    """A directory to install into."""

    def __init__(self, place, binary):
        self.place = place
        for name in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink(f"/{name}"):
                os.makedirs(self.path(os.path.join("/", os.readlink(f"/{name}"))), exist_ok=True)
                os.symlink(os.readlink(f"/{name}"), self.path(name))
        for name in PROGRAMS:
            self.copy(shutil.which(name))
        for library in libraries(binary):
            self.copy(library)
        for name in ("dev", "etc", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
            os.makedirs(self.path(name))
        os.makedirs(self.path("run/systemd/system"))
        self.write("usr/bin/systemctl", '#!/bin/sh\necho "$@" >>/systemctl_calls\n')
        os.chmod(self.path("usr/bin/systemctl"), 0o755)
        # A regular file instead of the device: the directory may be on a file system without devices.
        self.write("dev/null", "")
        self.write("var/lib/dpkg/status", "")
        self.write("etc/passwd", "root:x:0:0:root:/:/bin/sh\n")
        self.write("etc/group", "root:x:0:\n")

    def path(self, name):
        return os.path.join(self.place, name.lstrip("/"))

    def write(self, name, text, mode="w"):
        with open(self.path(name), mode, encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def copy(self, program):
        for source in (program, *(libraries(program) if "/lib" not in program else ())):
            if not os.path.exists(self.path(source)):
                os.makedirs(os.path.dirname(self.path(source)), exist_ok=True)
                shutil.copy(source, self.path(source))

    def dpkg(self, *arguments):
        # The dependencies of the package are present without being in this database.
        return run("dpkg", f"--root={self.place}", f"--log={self.path('dpkg.log')}", "--force-depends", *arguments)

    def systemctl_calls(self):
        """The calls of systemctl since the last call of this function."""
        systemctl_calls = self.read("systemctl_calls").splitlines()
        self.write("systemctl_calls", "")
        return systemctl_calls

    def ids(self, user):
        line = next(line for line in self.read("etc/passwd").splitlines() if line.startswith(user + ":"))
        return tuple(int(number) for number in line.split(":")[2:4])


def start(root):
    """Starts the server like the installed unit, but on a free port."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read_string(root.read(UNIT))
    service = unit["Service"]
    user, group = root.ids(service["User"])

    def drop_privileges():
        os.chroot(root.place)
        os.chdir("/")
        os.umask(int(service["UMask"], 8))
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)

    command = [*service["ExecStart"].split(), "--listen", "127.0.0.1:0"]
    return Server(None, None, {}, drop_privileges, command).ready()


def serve(root, name):
    """Starts the server, sends requests, and stops it."""
    server = start(root)
    try:
        client = Client(server.address)
        client.send("GET", "/health").expect(200)
        client.send("GET", "/ready").expect(200)
        assert b"<html" in client.send("GET", "/").body, "the page is served"
        client.close()
        Account(server.address, name)
        server.process.send_signal(signal.SIGTERM)
        status = server.process.wait(STOP_SECONDS)
        assert status == 0, f"stopped with {status}:\n" + "\n".join(server.lines[-20:])
    finally:
        server.kill()


def package(deb, root):
    root.dpkg("--install", deb)
    assert root.systemctl_calls() == ["daemon-reload"], "the first start is the operator's"
    state = os.stat(root.path(DATA))
    assert (state.st_uid, state.st_gid) == root.ids("tidewatch"), "the data belong to the service's user"
    assert state.st_mode & 0o777 == 0o700, f"only the service's user reads the data: {state.st_mode:o}"
    assert set(os.listdir(root.path("usr/share/tidewatch/series"))) == {"LICENSE", *SERIES}, "the demo's data"
    serve(root, "installed")
    assert "manifest" in os.listdir(root.path(DATA)), "the data are where the configuration file says"

    # A second installation keeps the operator's configuration and the server's data.
    root.write(CONFIG, "# mine\n", "a")
    root.dpkg("--install", deb)
    assert root.read(CONFIG).endswith("# mine\n"), "the operator's settings are kept"
    assert root.systemctl_calls() == ["daemon-reload", "try-restart tidewatch.service"], "a running server is restarted"
    serve(root, "again")

    root.dpkg("--remove", "tidewatch")
    assert root.systemctl_calls() == ["disable --now tidewatch.service", "daemon-reload"], "the server is stopped"
    assert os.path.exists(root.path(CONFIG)), "settings outlive the removal"
    said = root.dpkg("--purge", "tidewatch")
    for name in ("usr/bin/tidewatch", "usr/share/tidewatch", UNIT, "etc/tidewatch"):
        assert not os.path.exists(root.path(name)), f"/{name} is purged"
    assert "is kept" in said and os.listdir(root.path(DATA)), "data are never purged"


def tarball(path, scratch):
    with tarfile.open(path) as archive:
        names = {os.path.basename(name) for name in archive.getnames() if "/" in name}
        archive.extractall(scratch)
    expected = {"tidewatch", "LICENSE", "README.md", "CHANGELOG.md", "config.toml", "tidewatch.service", "series", *SERIES}
    assert names == expected, names
    name = os.path.basename(path).removesuffix(".tar.gz")
    version = run(os.path.join(scratch, name, "tidewatch"), "--version").split()[1]
    assert name.startswith(f"tidewatch-{version}-linux-"), f"{name} holds version {version}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    binary = os.path.abspath(parser.parse_args().binary)
    build = os.path.join(os.path.dirname(__file__), "../../packaging/build")
    scratch = tempfile.mkdtemp()
    # The service's user must have access to the contents.
    os.chmod(scratch, 0o755)
    try:
        # Fast compression: the size does not matter here.
        packed = run(build, binary, scratch, env={**os.environ, "DPKG_DEB_COMPRESSOR_TYPE": "none"}).split()
        tarball(packed[0], scratch)
        print(f"{os.path.basename(packed[0])}: complete", flush=True)
        if len(packed) == 1:
            raise Unavailable("there is no dpkg-deb to make a Debian package")
        if not may_change_root(scratch):
            raise Unavailable("only root may install a package, and where a container lets it change the root directory")
        package(packed[1], Root(os.path.join(scratch, "root"), binary))
        print(f"{os.path.basename(packed[1])}: installed, started, installed again, stopped and purged")
    except Unavailable as reason:
        print(f"skipped: {reason}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
