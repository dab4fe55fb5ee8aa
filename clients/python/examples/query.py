"""Prints the hourly extremes of a bucket's last day, and writes its points to a file.

TIDEWATCH_KEY=svc_… python query.py BUCKET points.parquet --url http://127.0.0.1:8080
"""

import argparse
from datetime import datetime, timedelta, timezone

from tidewatch import Client
from tidewatch.models.data import QueryFilters


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints a bucket's last day and writes its points to a file.")
    parser.add_argument("bucket")
    parser.add_argument("file", help="a Parquet file")
    parser.add_argument("--url", help="the service; else TIDEWATCH_URL")
    options = parser.parse_args()
    day: QueryFilters = {"startTime": datetime.now(timezone.utc) - timedelta(days=1)}
    with Client(options.url) as client:
        names = {source["_id"]: source["name"] for source in client.sources(options.bucket).iterate()}
        hours = client.data.query_frame(
            {"bucketId": options.bucket, "filters": day, "aggregation": ["min", "avg", "max"], "groupBy": "hour"}
        )
        hours["dataSourceId"] = hours["dataSourceId"].map(names)
        print(hours.to_string(index=False))
        size = client.data.export_to(options.file, {"bucketId": options.bucket, "filters": day}, "parquet")
        print(f"{options.file}: {size} bytes")


if __name__ == "__main__":
    main()
