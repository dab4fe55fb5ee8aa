"""Sends the load of this machine to a bucket.

    TIDEWATCH_KEY=svc_… python send.py BUCKET --url http://127.0.0.1:8080 --every 10

Makes the data source `load` in the bucket if there is none. The writer sends the points in batches, and again until
they are stored.
"""

import argparse
import itertools
import os
import time

from tidewatch import Client


def source_id(client: Client, bucket: str) -> str:
    for source in client.sources(bucket).iterate():
        if source["name"] == "load":
            return source["_id"]
    return client.sources(bucket).create("load", {"one": {"type": "number"}, "five": {"type": "number"}})["_id"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Sends the load of this machine to a bucket.")
    parser.add_argument("bucket")
    parser.add_argument("--url", help="the service; else TIDEWATCH_URL")
    parser.add_argument("--every", type=float, default=10, metavar="SECONDS")
    parser.add_argument("--points", type=int, help="end after so many")
    options = parser.parse_args()
    with Client(options.url) as client:
        source = source_id(client, options.bucket)
        with client.writer(options.bucket) as writer:
            for number in itertools.count(1):
                one, five, _ = os.getloadavg()
                writer.write(source, {"one": one, "five": five})
                if number == options.points:
                    break
                time.sleep(options.every)
        print(f"{writer.stats.inserted} points stored, {writer.stats.failed} refused")


if __name__ == "__main__":
    main()
