#!/usr/bin/env python3
"""Cuts the power of a server under load, on file systems in loop devices, again and again.

usage: power.py --binary BINARY

The file system is shut down without its journal being written, the server is killed, the file system is unmounted and
mounted again, and what the server finds there is held against what it had acknowledged before. Answers that come later
than the cut count as none: no client of a machine without power would have had them, and a sync that meets the shutdown
may be answered by the kernel as done though nothing of it reached the disk. How many such answers were for what is not
there is told, and is no fault. That the rounds notice a loss is shown first, by a server that does not sync.

POWER_SECONDS sets how long (25), POWER_SEED repeats the choices of a run; the seed is printed. Says why, and succeeds,
where the machine has no root, loop device or file system for it.
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
    """What the program itself says of the directory."""
    done = subprocess.run([binary, "check", "--data-dir", data_dir], capture_output=True, check=False, text=True)
    assert done.returncode == 0, f"check, exit {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def power_cuts(disk, binary, seconds, seed, settings=SETTINGS):
    """Rounds until the time is over; answers how many, how many starts were cut, and the ledger."""
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
    """Without syncs of the log something acknowledged is lost, and these rounds notice."""
    try:
        power_cuts(disk, binary, CANARY_SECONDS, seed, {**SETTINGS, "wal.sync": "never"})
    except AssertionError as loss:
        print(f"{disk.kind}, with wal.sync = never: {str(loss).strip().splitlines()[0][:160]}", flush=True)
        return
    raise AssertionError("with wal.sync = never nothing was missed")


def remount(disk):
    disk.unmount()
    disk.mount()


def audit_all(server, scene, ledger, chance):
    """At the end, every point and every thing of all rounds."""
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
                  f"the power was gone, {ledger.late_lost} of them for what is not there", flush=True)
            assert ledger.points > 0 and ledger.changes > 0, "the server was written to"
    except Unavailable as reason:
        print(f"skipped: {reason}")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
