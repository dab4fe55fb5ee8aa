#!/usr/bin/env python3
"""Writes points with the client of InfluxDB 2, in batches that are sent again until they are stored.

usage: TIDEWATCH_URL=http://127.0.0.1:8080 TIDEWATCH_KEY=svc_w_… send.py [SECONDS [POINTS_PER_SECOND]]
"""
import itertools
import os
import sys
import time

from influxdb_client import InfluxDBClient, Point, WriteOptions

# After a failed request: wait 1 s, then 2, then 4, 5, 5, …, for at most 10 minutes.
PATIENT = WriteOptions(
    flush_interval=1000, retry_interval=1000, max_retry_delay=5000, max_retries=200, max_retry_time=600_000
)


def main(seconds: float = 10, rate: float = 10) -> None:
    stored, refused = [], []
    client = InfluxDBClient(url=os.environ["TIDEWATCH_URL"], token=os.environ["TIDEWATCH_KEY"], org="-")
    with client, client.write_api(
        PATIENT,
        success_callback=lambda _, lines: stored.append(lines.count(b"\n") + 1),
        error_callback=lambda _, lines, error: refused.append(error),
    ) as writer:
        end = time.monotonic() + seconds
        for number in itertools.count():
            if time.monotonic() >= end:
                break
            room = ("kitchen", "hall", "attic")[number % 3]
            point = Point("weather").tag("room", room).field("temperature", 20 + number / 1000).field("number", number)
            writer.write(bucket="-", record=point.time(time.time_ns()))
            time.sleep(1 / rate)
    print(f"{sum(stored)} points stored")
    if refused:
        sys.exit(f"given up: {refused[0]}")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
