#!/usr/bin/env python3
"""Sends a CSV series (timestamp,value) to a data source, moved in time so that its last point is now.

usage: send_csv.py BASE_URL API_KEY BUCKET_ID SOURCE_ID FIELD FILE

Points older than 30 days are left out: a batch takes none. Needs nothing but Python.
"""
import csv
import datetime
import json
import sys
import urllib.request

BATCH = 1000


def main(base, key, bucket, source, field, path):
    with open(path, newline="") as file:
        rows = [(datetime.datetime.fromisoformat(row["timestamp"]), float(row["value"])) for row in csv.DictReader(file)]
    shift = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0) - rows[-1][0]
    oldest = rows[-1][0] + shift - datetime.timedelta(days=29, hours=23)
    points = [
        {"dataSourceId": source, "timestamp": (time + shift).isoformat() + "Z", "values": {field: value}}
        for time, value in rows
        if time + shift >= oldest
    ]
    sent = 0
    for start in range(0, len(points), BATCH):
        body = json.dumps({"bucketId": bucket, "dataPoints": points[start : start + BATCH]}).encode()
        request = urllib.request.Request(
            f"{base}/api/data/batch", body, {"X-API-Key": key, "Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            sent += json.load(response)["insertedCount"]
    print(f"{sent} points sent, {len(rows) - len(points)} older than 30 days left out")


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
