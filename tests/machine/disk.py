"""A file system in a loop device, whose power can be cut. Requires root.

All of it is removed when the process ends in any way: the mount is in a mount namespace of the process, the image is
unlinked once the device has it, and the device is released with its last user.
"""
import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import tempfile

LOOP_CTL_GET_FREE, LOOP_SET_FD, LOOP_SET_STATUS64 = 0x4C82, 0x4C00, 0x4C04
AUTOCLEAR = 4
# _IOR('X', 125, __u32), of ext4 and xfs.
SHUTDOWN = 0x8004587D
# Data that the file system's journal has not written yet is lost, too.
WITHOUT_LOG_FLUSH = 2
NEW_NAMESPACE = 0x00020000
IMAGE_BYTES = 1 << 30


class Unavailable(Exception):
    """The reason why this machine is unsuitable."""


def enter_namespace():
    """Hides later mounts from all processes except this one and its children."""
    if os.geteuid() != 0:
        raise Unavailable("only root may mount")
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NAMESPACE) != 0:
        raise Unavailable("no mount namespace can be made")
    made = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, check=False)
    if made.returncode != 0:
        raise Unavailable(f"mounts cannot be kept apart: {made.stderr.decode().strip()}")


class Disk:
    """A mounted file system of this kind."""

    def __init__(self, kind, root):
        if shutil.which(f"mkfs.{kind}") is None:
            raise Unavailable(f"there is no mkfs.{kind}")
        self.kind, self.place, self.mounted = kind, os.path.join(root, kind), False
        os.makedirs(self.place)
        self.device = self.attach(root)
        quick = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"] if kind == "ext4" else ["-q"]
        made = subprocess.run([f"mkfs.{kind}", *quick, self.name], capture_output=True, check=False)
        if made.returncode != 0:
            raise Unavailable(f"mkfs.{kind}: {made.stderr.decode().strip()}")
        self.mount()

    def attach(self, root):
        """Opens a loop device of an unlinked image."""
        try:
            with open("/dev/loop-control", "rb") as control:
                self.name = f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
            device = os.open(self.name, os.O_RDWR)
        except OSError as error:
            raise Unavailable(f"no loop device: {error}") from error
        with tempfile.TemporaryFile(dir=root) as image:
            image.truncate(IMAGE_BYTES)
            fcntl.ioctl(device, LOOP_SET_FD, image.fileno())
        status = bytearray(232)
        struct.pack_into("I", status, 52, AUTOCLEAR)
        fcntl.ioctl(device, LOOP_SET_STATUS64, bytes(status))
        return device

    def mount(self):
        done = subprocess.run(["mount", "-t", self.kind, self.name, self.place], capture_output=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"mount -t {self.kind}: {done.stderr.decode().strip()}")
        self.mounted = True

    def cut_power(self):
        """Prevents all further writes to the disk."""
        place = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(place, SHUTDOWN, struct.pack("I", WITHOUT_LOG_FLUSH))
        finally:
            os.close(place)

    def unmount(self):
        subprocess.run(["umount", self.place], check=True)
        self.mounted = False

    def close(self):
        if self.mounted:
            subprocess.run(["umount", "-l", self.place], check=False)
        os.close(self.device)
