#!/usr/bin/env python3
"""Repeated power cuts of a server under load, on file systems in loop devices.

usage: power.py --binary BINARY

The file system is shut down without writing its journal, the server is killed, the file system is unmounted and mounted
again, and the recovered data is compared with what the server had acknowledged. Answers after the cut do not count: no
client of a machine without power would have received them, and the kernel may report a sync during the shutdown as done
although its data did not reach the disk. The number of such answers whose data is missing is printed, and is not a
failure. First, a server that does not sync shows that the rounds detect a loss.

POWER_SECONDS sets the duration (25), POWER_SEED repeats a run; the seed is printed. Without root, a loop device or a
suitable file system, the script prints the reason and succeeds.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from disk import Disk, Unavailable, enter_namespace
from load import Ledger, Round, Scene, audit
from server import Account, Client, Server

SECONDS = 25
KINDS = ("ext4", "xfs")
# Log files of 1 MiB and a checkpoint for every 64 KiB, so that files are frequently created and removed.
SETTINGS = {"storage.checkpoint_bytes": 65_536, "accounts.default_plan": "Enterprise",
            "accounts.signups_per_hour_max": 0, "log.filter": "warn,tidewatch=info"}
LOAD_SECONDS = 60
# For a server that does not sync: the first one or two cuts must detect it.
CANARY_SECONDS = 20


def listed_keys(client, token):
    found, offset = set(), 0
    while True:
        page = client.send("GET", f"/api/organization/keys?limit=100&offset={offset}", None, token).expect(200)
        found.update(key["_id"] for key in page["apiKeys"])
        offset += 100
        if not page["pagination"]["hasMore"]:
            return found


def check(binary, data_dir):
    """Runs `tidewatch check` on the directory."""
    done = subprocess.run([binary, "check", "--data-dir", data_dir], capture_output=True, check=False, text=True)
    assert done.returncode == 0, f"check, exit {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def power_cuts(disk, binary, seconds, seed, settings=SETTINGS):
    """Runs rounds for this time; returns their number, the number of interrupted starts, and the ledger."""
    chance = random.Random(seed)
    data_dir = os.path.join(disk.place, "data")
    ledger, scene, rounds, cut_starts = Ledger(), None, 0, 0
    deadline = time.monotonic() + seconds
    server = Server(binary, data_dir, settings).ready()
    try:
        while time.monotonic() < deadline:
            if scene is None:
                scene = Scene(server.address, Account(server.address, f"power-{disk.kind}"))
            load = Round(server.address, scene, ledger, seed + rounds)
            load.start()
            load.wait_for(chance.randrange(1, 1_000), LOAD_SECONDS)
            load.cut.set()
            disk.cut_power()
            server.kill()
            load.join()
            remount(disk)
            if chance.random() < 0.3:
                check(binary, data_dir)
            while chance.random() < 0.4:
                # The power is cut at any moment while the server recovers.
                cut_starts += 1
                server = Server(binary, data_dir, settings)
                server.known.wait(chance.random() * 0.08)
                disk.cut_power()
                server.kill()
                remount(disk)
            server = Server(binary, data_dir, settings).ready()
            client = Client(server.address, scene.account.key)
            scene.keys = listed_keys(client, scene.account.token)
            audit(scene, client, ledger, chance)
            client.close()
            rounds += 1
        audit_all(server, scene, ledger, chance)
    except Exception:
        if settings is SETTINGS:
            print("\n".join(server.lines[-20:]))
        raise
    finally:
        server.kill()
    check(binary, data_dir)
    return rounds, cut_starts, ledger


def assert_losses_show(disk, binary, seed):
    """Asserts that the rounds detect the loss of acknowledged data if the log is not synced."""
    try:
        power_cuts(disk, binary, CANARY_SECONDS, seed, {**SETTINGS, "wal.sync": "never"})
    except AssertionError as loss:
        print(f"{disk.kind}, with wal.sync = never: {str(loss).strip().splitlines()[0][:160]}", flush=True)
        return
    raise AssertionError("no loss was detected with wal.sync = never")


def remount(disk):
    disk.unmount()
    disk.mount()


def audit_all(server, scene, ledger, chance):
    """Audits all points and objects of all rounds."""
    client = Client(server.address, scene.account.key)
    for bucket, stored in ledger.counts.items():
        rows = scene.rows(client, bucket)
        assert len(rows) == len(set(rows)) == stored, f"{len(rows)} rows in bucket {bucket}, not {stored}"
    ledger.touched = set(ledger.things)
    scene.keys = listed_keys(client, scene.account.token)
    audit(scene, client, ledger, chance)
    client.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    binary = os.path.abspath(parser.parse_args().binary)
    seed = int(os.environ.get("POWER_SEED") or random.randrange(1 << 32))
    seconds = int(os.environ.get("POWER_SECONDS") or SECONDS)
    print(f"POWER_SEED={seed} POWER_SECONDS={seconds}", flush=True)
    root = tempfile.mkdtemp()
    try:
        enter_namespace()
        kinds = [kind for kind in KINDS if shutil.which(f"mkfs.{kind}")]
        if not kinds:
            raise Unavailable("there is neither mkfs.ext4 nor mkfs.xfs")
        for kind in kinds:
            disk = Disk(kind, root)
            try:
                assert_losses_show(disk, binary, seed)
                shutil.rmtree(os.path.join(disk.place, "data"))
                rounds, cut_starts, ledger = power_cuts(disk, binary, seconds / len(kinds), seed)
            finally:
                disk.close()
            print(f"{kind}: {rounds} power cuts under load, {cut_starts} of a start; {ledger.points} points and "
                  f"{ledger.changes} changes acknowledged, none missing, none twice; {ledger.late} answers came after "
                  f"the power was gone, {ledger.late_lost} of them for missing data", flush=True)
            assert ledger.points > 0 and ledger.changes > 0, "the server was written to"
    except Unavailable as reason:
        print(f"skipped: {reason}")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
