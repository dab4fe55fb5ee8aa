#!/usr/bin/env python3
"""Writes points with the client of InfluxDB 1, in batches that are sent again until they are stored.

usage: TIDEWATCH_URL=http://127.0.0.1:8080 TIDEWATCH_KEY=svc_w_… send_v1.py [SECONDS [POINTS_PER_SECOND]]
"""
import itertools
import os
import sys
import time
import urllib.parse

from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBServerError

BATCH = 100


def main(seconds: float = 10, rate: float = 10) -> None:
    url = urllib.parse.urlsplit(os.environ["TIDEWATCH_URL"])
    # retries=0: a server out of reach is tried without end.
    client = InfluxDBClient(
        url.hostname, url.port, username="-", password=os.environ["TIDEWATCH_KEY"], database="-",
        ssl=url.scheme == "https", verify_ssl=True, retries=0,
    )
    stored, batch, end = 0, [], time.monotonic() + seconds
    for number in itertools.count():
        is_over = time.monotonic() >= end
        if len(batch) >= min(BATCH, rate) or (is_over and batch):
            write(client, batch)
            stored, batch = stored + len(batch), []
        if is_over:
            break
        batch.append({
            "measurement": "climate", "tags": {"room": ("cellar", "porch")[number % 2]}, "time": time.time_ns(),
            "fields": {"humidity": 40 + number / 1000, "number": number},
        })
        time.sleep(1 / rate)
    print(f"{stored} points stored")


def write(client: InfluxDBClient, batch: list[dict]) -> None:
    while True:
        try:
            client.write_points(batch, time_precision="n")
            return
        except InfluxDBServerError:
            # It starts, or is busy.
            time.sleep(1)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
