"""The programs of `examples` and the notebook, run as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import nbformat
import polars as pl
import pytest
from conftest import Account
from nbclient import NotebookClient

from tidewatch import Client
from tidewatch.models.common import Parameters
from tidewatch.models.data import Entry
from tidewatch.models.rules import Input

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def measured(client: Client, bucket: str, source: str) -> str:
    """A bucket whose levels of the last two hours rise from 0."""
    start = datetime.now(timezone.utc) - timedelta(hours=2)
    entries: list[Entry] = [
        {"dataSourceId": source, "timestamp": start + timedelta(minutes=i), "values": {"level": i, "open": True}}
        for i in range(120)
    ]
    client.data.insert_batch(bucket, entries)
    return bucket


def run(account: Account, *command: object, key: str | None = None) -> str:
    environment = {**os.environ, "TIDEWATCH_URL": account.url, "TIDEWATCH_KEY": key or account.key}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=EXAMPLES,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def test_send(account: Account, bucket: str) -> None:
    for _ in range(2):
        assert run(account, "send.py", bucket, "--every", 0, "--points", 3) == "3 points stored, 0 refused\n"
    [source] = account.client.sources(bucket).list()
    assert source["name"] == "load"
    assert len(list(account.client.data.rows({"bucketId": bucket, "downsampling": False}))) == 6


def test_query(account: Account, measured: str, tmp_path: Path) -> None:
    file = tmp_path / "points.parquet"
    printed = run(account, "query.py", measured, file)
    heading, *hours, written = printed.splitlines()
    assert {"timestamp", "level.min", "level.avg", "level.max"} <= set(heading.split())
    assert len(hours) in {2, 3}
    assert all("tank" in hour for hour in hours)
    assert written == f"{file}: {file.stat().st_size} bytes"
    assert pl.read_parquet(file)["level"].to_list() == list(range(120))


LEVEL: Input = {"key": "left", "field": "level"}
OPEN: Input = {"key": "right", "field": "open"}
# A kind, its parameters, its inputs, and the outcome.
RULES: list[tuple[str, Parameters, list[Input], str]] = [
    ("stuck", {}, [OPEN], "met"),
    ("stuck", {}, [LEVEL], "not_met"),
    ("stuck", {"minPoints": 500}, [OPEN], "inconclusive"),
    ("imbalance", {"percent": 10}, [LEVEL, {"key": "right", "field": "level"}], "not_met"),
    ("imbalance", {"percent": 10}, [LEVEL, {**OPEN, "field": "level", "aggregation": "max", "groupBy": "all"}], "met"),
    ("imbalance", {"percent": 10}, [LEVEL, OPEN], "inconclusive"),
]


def test_evaluator(account: Account, measured: str, source: str) -> None:
    rules = account.client.rules
    made = [
        rules.create(
            measured,
            source,
            f"rule {number}",
            natural_language_query="as it says",
            evaluation={
                "kind": kind,
                "intervalSeconds": 60,
                "windowSeconds": 86_400,
                "inputs": inputs,
                "parameters": parameters,
            },
        )
        for number, (kind, parameters, inputs, _) in enumerate(RULES)
    ]
    key = account.owner.organization.keys.create("evaluator", "integration")["key"]
    run(account, "-m", "tidewatch.evaluator", "evaluator:registry", "--once", key=key)
    verdicts = {
        rule["name"]: [entry["outcome"] for entry in rules.history(rule["_id"]) if entry["kind"] == "verdict"]
        for rule in made
    }
    assert verdicts == {f"rule {number}": [outcome] for number, (*_, outcome) in enumerate(RULES)}


# The packages of Jupyter warn about each other.
@pytest.mark.filterwarnings("default")
def test_the_notebook_plots(account: Account, measured: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook: Any = nbformat.read(EXAMPLES / "plot.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells), "kept without outputs"
    monkeypatch.setenv("TIDEWATCH_URL", account.url)
    monkeypatch.setenv("TIDEWATCH_KEY", account.key)
    monkeypatch.setenv("TIDEWATCH_BUCKET", measured)
    NotebookClient(notebook, timeout=50, kernel_name="python3").execute()
    assert any("image/png" in output.get("data", {}) for output in cells[-1].outputs)
