"""A memory cgroup for one server: its limit and its usage. Version 1 or 2, whichever has the memory controller."""
import os
import pathlib

ROOT = pathlib.Path("/sys/fs/cgroup")
PREFIX = "tidewatch-siege-"


class Cgroup:
    """A group with a memory limit and without swap. `OSError` if it cannot be created."""

    def __init__(self, bytes_max):
        first = (ROOT / "memory" / "memory.limit_in_bytes").exists()
        parent = ROOT / "memory" if first else ROOT
        self.names = {"limit": "memory.limit_in_bytes", "most": "memory.max_usage_in_bytes", "anonymous": "rss"} if first \
            else {"limit": "memory.max", "most": "memory.peak", "anonymous": "anon"}
        for stale in parent.glob(PREFIX + "*"):
            # Left by a killed run, without processes.
            if not (stale / "cgroup.procs").read_text().strip():
                stale.rmdir()
        if not first and "memory" not in (parent / "cgroup.subtree_control").read_text():
            (parent / "cgroup.subtree_control").write_text("+memory")
        self.path = parent / f"{PREFIX}{os.getpid()}"
        self.path.mkdir()
        try:
            self.write(self.names["limit"], bytes_max)
            # Absent if the system does not account swap.
            for name, value in (("memory.memsw.limit_in_bytes", bytes_max), ("memory.swap.max", 0)):
                if (self.path / name).exists():
                    self.write(name, value)
        except OSError:
            self.close()
            raise

    def write(self, name, value):
        (self.path / name).write_text(str(value))

    def enter(self):
        """Moves the calling process into the group."""
        self.write("cgroup.procs", os.getpid())

    def anonymous_bytes(self):
        """Current memory in bytes without page cache."""
        lines = (self.path / "memory.stat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.split()[0] == self.names["anonymous"])

    def peak_bytes(self):
        """Peak memory in bytes with page cache; `None` if the system does not report it."""
        path = self.path / self.names["most"]
        return int(path.read_text()) if path.exists() else None

    def close(self):
        self.path.rmdir()
