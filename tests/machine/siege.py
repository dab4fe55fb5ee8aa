#!/usr/bin/env python3
"""Six attacks on a server in 512 MiB, while another organization writes and reads a point every 100 ms.

usage: siege.py --binary BINARY

The server runs in a memory cgroup of 512 MiB without swap, if this machine permits one, with the settings of README.md
for such a machine. The process must survive; its memory without page cache must stay within the sum of its configured
budgets and a quarter; requests of the other organization, the neighbour, must succeed, except for 503 with Retry-After,
which are counted. SIEGE_SEED repeats a run; the seed is printed.
"""
import argparse
import http.client
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import attacks
from cgroup import Cgroup
from server import Account, Client, Server, timestamp

MIB = 1 << 20
CGROUP_BYTES = 512 * MIB
# The settings of README.md, "In 512 MiB".
BUDGETS = {
    "storage.memory_bytes_max": 128 * MIB,
    "storage.cache_bytes_max": 16 * MIB,
    "query.memory_bytes_max": 32 * MIB,
    "server.answer_bytes_max": 32 * MIB,
    "limits.catalog_bytes_max": 32 * MIB,
}
SETTINGS = {
    **BUDGETS,
    "server.connections_max": 4_096,
    "query.threads": 1,
    "storage.checkpoint_bytes": 16 * MIB,
    "accounts.default_plan": "Enterprise",
    "accounts.signups_per_hour_max": 0,
    "webhooks.allow_private_networks": "true",
    "log.filter": "warn,tidewatch=info",
}
# Pending deliveries have an additional quarter of storage.memory_bytes_max. Queries have two threads: the configured
# one, and that of small queries. Connections, threads and the program itself must fit into the remaining quarter.
BUDGET_BYTES = sum(BUDGETS.values()) + BUDGETS["storage.memory_bytes_max"] // 4 + BUDGETS["query.memory_bytes_max"]
MEMORY_BYTES_MAX = BUDGET_BYTES * 5 // 4
NEIGHBOUR_SECONDS = 0.1
SLICE_SECONDS = 0.05
HELD_TURNS = 20
TURNS_SECONDS = 60


class Neighbour(threading.Thread):
    """Another organization, which writes and reads a point every 100 ms."""

    def __init__(self, address):
        super().__init__(daemon=True)
        account = Account(address, "neighbour", tls=True)
        self.client = Client(address, account.key, tls=True)
        made = self.client.send("POST", "/api/buckets", {"name": "tides"}).expect(201)
        self.bucket = made["bucket"]["_id"]
        schema = {"name": "gauge", "schema": {"level": {"type": "number"}}}
        self.source = self.client.send("POST", f"/api/buckets/{self.bucket}/sources", schema).expect(201)
        self.source = self.source["dataSource"]["_id"]
        self.ended, self.lock = threading.Event(), threading.Condition()
        self.served, self.later, self.slowest, self.faults, self.sent = 0, 0, 0.0, [], 0

    def run(self):
        while not self.ended.wait(NEIGHBOUR_SECONDS):
            self.send_round()

    def send_round(self):
        at = timestamp(time.time_ns())
        point = {"bucketId": self.bucket, "dataSourceId": self.source, "timestamp": at, "values": {"level": self.sent}}
        if self.post("/api/data", point, 201):
            self.sent += 1
        query = {"bucketId": self.bucket, "limit": 1, "downsampling": False}
        self.post("/api/data/query", query, 200)

    def post(self, path, body, status):
        began = time.monotonic()
        try:
            answer = self.client.send("POST", path, body)
        except (OSError, http.client.HTTPException) as error:
            with self.lock:
                self.faults.append(f"{path}: no answer: {error!r}")
                self.lock.notify_all()
            return False
        with self.lock:
            self.slowest = max(self.slowest, time.monotonic() - began)
            if answer.status == status:
                self.served += 1
            elif answer.status == 503 and answer.headers.get("Retry-After"):
                self.later += 1
            else:
                self.faults.append(f"{path}: {answer.status} {answer.body[:200]!r}")
            self.lock.notify_all()
            return answer.status == status

    def wait_for_turns(self, count):
        """Waits for `count` further answers, or a failure."""
        with self.lock:
            until = self.served + self.later + count
            self.lock.wait_for(lambda: self.faults or self.served + self.later >= until, TURNS_SECONDS)

    def take_results(self):
        """Results of its requests since the last call."""
        with self.lock:
            taken = (self.served, self.later, self.slowest, self.faults)
            self.served, self.later, self.slowest, self.faults = 0, 0, 0.0, []
            return taken


class Memory(threading.Thread):
    """Polls the server's memory and keeps the peak."""

    def __init__(self, server, group):
        super().__init__(daemon=True)
        self.server, self.group, self.ended, self.most = server, group, threading.Event(), 0

    def run(self):
        while not self.ended.wait(SLICE_SECONDS):
            self.most = max(self.most, self.current_bytes())

    def current_bytes(self):
        if self.group is not None:
            return self.group.anonymous_bytes()
        return status_bytes(self.server, "RssAnon")

    def take_peak(self):
        most, self.most = max(self.most, self.current_bytes()), 0
        return most


def status_bytes(server, name):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith(name + ":"))
    return int(line.split()[1]) * 1_024


def certificate(root):
    """Creates a certificate, since HTTP/2 requires TLS; `None` without openssl."""
    if shutil.which("openssl") is None:
        return None
    paths = os.path.join(root, "certificate.pem"), os.path.join(root, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-out", paths[0], "-keyout", paths[1]],
                   check=True, capture_output=True)
    return paths


def run_attacks(server, group, seed):
    pid, most_ever, later_ever = server.process.pid, 0, 0
    neighbour, memory = Neighbour(server.address), Memory(server, group)
    attacker = Account(server.address, "attacker", tls=True)
    neighbour.start()
    memory.start()
    try:
        for name, attack in attacks.ALL:
            began = time.monotonic()
            with attacks.Attacker(server.address, attacker, random.Random(seed)) as attack_client:
                description = attack(attack_client)
                # While all connections and requests are open.
                neighbour.wait_for_turns(HELD_TURNS)
            # The attack ends; the neighbour continues.
            served, later, slowest, faults = neighbour.take_results()
            most = memory.take_peak()
            most_ever, later_ever = max(most_ever, most), later_ever + later
            print(f"{name}: {description}; {time.monotonic() - began:.1f} s; at most {most / MIB:.0f} MiB; neighbour: {served} "
                  f"served, {later} answered 503, the slowest in {slowest:.2f} s", flush=True)
            assert server.process.poll() is None, f"the server has ended: {server.process.returncode}"
            assert not faults, f"{len(faults)} requests of the neighbour failed: {faults[:3]}"
            assert served > 0, "the neighbour was served"
            assert most <= MEMORY_BYTES_MAX, f"{most / MIB:.0f} MiB, more than {MEMORY_BYTES_MAX / MIB:.0f}"
    finally:
        for thread in (neighbour, memory):
            thread.ended.set()
        for thread in (neighbour, memory):
            thread.join()
    neighbour.take_results()
    neighbour.send_round()
    assert neighbour.take_results()[0] == 2, "the neighbour is served immediately after the attacks"
    assert server.process.pid == pid
    return most_ever, later_ever


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    binary = os.path.abspath(parser.parse_args().binary)
    seed = int(os.environ.get("SIEGE_SEED") or random.randrange(1 << 32))
    print(f"SIEGE_SEED={seed}; budget {BUDGET_BYTES / MIB:.0f} MiB, at most {MEMORY_BYTES_MAX / MIB:.0f} MiB", flush=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    group = None
    try:
        group = Cgroup(CGROUP_BYTES)
    except OSError as error:
        print(f"without a memory cgroup, measured by /proc: {error}")
    root = tempfile.mkdtemp()
    server = None
    try:
        paths = certificate(root)
        if paths is None:
            print("skipped: there is no openssl to make a certificate")
            return
        settings = {**SETTINGS, "server.tls_certificate": paths[0], "server.tls_key": paths[1]}
        server = Server(binary, os.path.join(root, "data"), settings, group.enter if group else None).ready()
        most, later = run_attacks(server, group, seed)
        usage = group.peak_bytes() if group else None
        print(f"the server survived; memory without files at most {most / MIB:.0f} MiB, resident with files "
              f"{status_bytes(server, 'VmHWM') / MIB:.0f} MiB"
              + (f", all of the group with its page cache {usage / MIB:.0f} MiB" if usage else "")
              + f"; {later} requests of the neighbour answered 503")
    except BaseException:
        if server is not None:
            print("\n".join(server.lines[-15:]))
        raise
    finally:
        if server is not None:
            server.kill()
        if group is not None:
            group.close()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
