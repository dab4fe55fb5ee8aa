"""The installed wheel without pandas and Polars: writes, queries, and says what a frame needs.

usage: smoke.py URL
"""

import subprocess
import sys
from pathlib import Path

import tidewatch


def main(url: str) -> None:
    assert Path(sys.prefix) in Path(tidewatch.__file__).parents, f"{tidewatch.__file__} is not of this environment"
    with tidewatch.Client(url) as anyone:
        token = anyone.auth.signup("ada@example.com", "correct horse battery", "Ada")["token"]
    with tidewatch.Client(url, token=token) as client:
        bucket = client.buckets.create("plant")["_id"]
        source = client.sources(bucket).create("tank", {"level": {"type": "number"}})["_id"]
        key = client.organization.keys.create("evaluator", "integration")["key"]
        with client.writer(bucket) as writer:
            for level in range(10):
                writer.write(source, {"level": level})
        levels = [row["values"]["level"] for row in client.data.rows({"bucketId": bucket})]
        assert levels == list(range(10)), levels
        try:
            client.data.query_frame({"bucketId": bucket})
        except ImportError as fault:
            message = str(fault)
        else:
            message = "no error, so pandas is installed"
        assert "tidewatch[pandas]" in message, message
    Path("kinds.py").write_text("from tidewatch.evaluator import Registry\nregistry = Registry()\n")
    evaluate = [sys.executable, "-m", "tidewatch.evaluator", "kinds:registry", "--url", url, "--key", key, "--once"]
    subprocess.run(evaluate, check=True)


if __name__ == "__main__":
    main(sys.argv[1])
