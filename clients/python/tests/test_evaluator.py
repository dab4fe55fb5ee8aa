"""The evaluator kit, against the real server and beside the evaluator of the server."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import PASSWORD, Account
from serving import Server

from tidewatch import Client, Retry
from tidewatch.evaluator import (
    Evaluator,
    EvaluatorError,
    EvaluatorOptions,
    Registry,
    Task,
    Verdict,
    inconclusive,
    met,
    not_met,
)
from tidewatch.evaluator.__main__ import main
from tidewatch.models.data import Entry
from tidewatch.models.rules import Evaluation, HistoryEntry

EXAMPLES = Path(__file__).parent.parent / "examples"
ONCE = EvaluatorOptions(once=True, claim_seconds=30, retry=Retry(backoff_seconds=0.01))
NOW = datetime.now(timezone.utc).replace(microsecond=0)


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def integration_key(account: Account) -> str:
    return account.owner.organization.keys.create("evaluator", "integration")["key"]


def rule(account: Account, bucket: str, source: str, kind: str | None, parameters: Any, **more: Any) -> str:
    inputs = more.pop("inputs", [{"key": "x", "field": "level"}])
    block: Any = {"intervalSeconds": 60, "windowSeconds": 3600, "inputs": inputs, "parameters": parameters, **more}
    if kind is not None:
        block["kind"] = kind
    evaluation: Evaluation = block
    name = f"{kind} {parameters}"[:100]
    made = account.client.rules.create(bucket, source, name, natural_language_query="as it says", evaluation=evaluation)
    return made["_id"]


def verdict(account: Account, rule_id: str) -> HistoryEntry:
    [entry] = [entry for entry in account.client.rules.history(rule_id) if entry["kind"] == "verdict"]
    return entry


# What a rule may say, for all the reference kinds: parameters that decide, that do not, and that are wrong.
REFERENCE: list[tuple[str | None, dict[str, Any], dict[str, Any]]] = [
    ("threshold", {"operator": "gt", "value": 50}, {}),
    ("threshold", {"operator": "lt", "value": 0}, {}),
    ("threshold", {"operator": "gte", "value": 10, "match": "all"}, {}),
    ("threshold", {"operator": "gt", "value": 50, "match": "last"}, {}),
    ("threshold", {"operator": "lte", "value": 20, "match": "count", "minCount": 3}, {}),
    ("threshold", {"operator": "lte", "value": 20, "match": "count", "minCount": 3000}, {}),
    ("threshold", {"operator": "eq", "value": "auto"}, {"inputs": [{"key": "m", "field": "mode"}]}),
    ("threshold", {"operator": "neq", "value": True}, {"inputs": [{"key": "o", "field": "open"}]}),
    ("threshold", {"operator": "gt", "value": "auto"}, {"inputs": [{"key": "m", "field": "mode"}]}),
    ("threshold", {"operator": "gt", "value": 1}, {"inputs": [{"key": "m", "field": "mode"}]}),
    ("threshold", {"operator": "above", "value": 1}, {}),
    ("threshold", {"operator": "gt"}, {}),
    ("threshold", {"operator": "gt", "value": 1, "vlaue": 2}, {}),
    ("threshold", {"operator": "gt", "value": 1, "minCount": 2}, {}),
    ("threshold", {"operator": "gt", "value": 50, "inputs": "any"}, {"inputs": "two"}),
    ("threshold", {"operator": "gt", "value": 50, "inputs": "all"}, {"inputs": "two"}),
    ("threshold", {"operator": "gt", "value": 50, "inputs": "each"}, {}),
    ("threshold", {"operator": "gt", "value": 50}, {"inputs": "grouped"}),
    ("range", {"low": 0, "high": 100}, {}),
    ("range", {"low": 20, "high": 30}, {}),
    ("range", {"low": 20, "high": 30, "inside": True, "match": "last"}, {}),
    ("range", {"low": 30, "high": 20}, {}),
    ("change", {"direction": "increase", "by": 5}, {}),
    ("change", {"direction": "decrease", "by": 5}, {}),
    ("change", {"direction": "any", "by": 10, "percent": True, "from": "min"}, {}),
    ("change", {"direction": "increase", "by": 10, "from": "max"}, {}),
    ("change", {"direction": "increase", "by": 0}, {}),
    ("change", {"direction": "any", "by": 1}, {"inputs": [{"key": "s", "field": "single"}]}),
    ("absence", {}, {}),
    ("absence", {"maxGapSeconds": 60}, {}),
    ("absence", {"maxGapSeconds": 100_000}, {}),
    ("absence", {}, {"inputs": [{"key": "n", "field": "never"}]}),
    ("absence", {"maxGapSeconds": 60}, {"inputs": [{"key": "n", "field": "never"}]}),
    ("absence", {"maxGapSeconds": 7200}, {"inputs": [{"key": "n", "field": "never"}]}),
    ("absence", {"maxGapSeconds": 5000}, {"inputs": "grouped"}),
    ("zscore", {}, {}),
    ("zscore", {"limit": 2, "minPoints": 5}, {}),
    ("zscore", {"limit": 100, "minPoints": 5}, {}),
    ("zscore", {"minPoints": 5000}, {}),
    ("zscore", {"minPoints": 2}, {"inputs": [{"key": "c", "field": "constant"}]}),
    ("zscore", {"minPoints": 1}, {}),
    ("zscore", {}, {"inputs": [{"key": "n", "field": "never"}]}),
    ("seasonal", {"limit": 3}, {}),
    (None, {}, {}),
]
INPUTS = {
    "two": [{"key": "x", "field": "level"}, {"key": "n", "field": "never"}],
    "grouped": [{"key": "x", "field": "level", "aggregation": "max", "groupBy": "hour"}],
}


def reference_rules(account: Account) -> list[str]:
    """A source whose last value jumps, and a rule for each of `REFERENCE`."""
    bucket = account.client.buckets.create("reference")["_id"]
    schema: Any = {name: {"type": "number"} for name in ("level", "single", "never", "constant")}
    schema |= {"mode": {"type": "string"}, "open": {"type": "boolean"}}
    source = account.client.sources(bucket).create("tank", schema)["_id"]
    entries: list[Entry] = []
    for i in range(40):
        values: dict[str, Any] = {"level": 20 + i % 7, "mode": "auto" if i % 3 else "by hand", "open": True}
        values |= {"constant": 5 if i < 39 else 6} | ({"single": 1} if i == 20 else {})
        values["level"] = 77.5 if i == 39 else values["level"]
        entries.append({"dataSourceId": source, "timestamp": NOW - timedelta(minutes=45 - i), "values": values})
    entries[-1]["metadata"] = {"shift": "early"}
    account.client.data.insert_batch(bucket, entries)
    made = []
    for kind, parameters, more in REFERENCE:
        given = more | ({"inputs": INPUTS[more["inputs"]]} if isinstance(more.get("inputs"), str) else {})
        made.append(rule(account, bucket, source, kind, parameters, **given))
    return made


def comparable(value: Any) -> Any:
    """Evidence without what depends on the second of the evaluation, on rounding, or on the words of a reason."""
    if isinstance(value, dict):
        hidden = {"gapSeconds"} | ({"currentValue"} if value.get("operator") == "absent_for" else set())
        return {name: comparable(one) for name, one in value.items() if name not in hidden | {"reason"}}
    if isinstance(value, list):
        return [comparable(one) for one in value]
    return round(value, 9) if isinstance(value, float) else value


def test_the_reference_kinds_judge_as_the_reference_evaluator(
    account: Account, server: Server, binary: Path, request: pytest.FixtureRequest
) -> None:
    with Client(server.url) as anyone:
        token = anyone.auth.signup("twin-" + account.email, PASSWORD, "Grace")["token"]
    with Client(server.url, token=token) as owner:
        twin = Account(server.url, "", token, "", owner, owner)
        mine, theirs = reference_rules(account), reference_rules(twin)
        subprocess.run(
            [binary, "evaluate", "--url", server.url, "--once"],
            env={**os.environ, "TIDEWATCH_KEY": integration_key(twin)},
            check=True,
            capture_output=True,
            timeout=60,
        )
        Evaluator(example("reference_kinds").registry, server.url, integration_key(account), ONCE).run()
        outcomes = set()
        for index, (left, right) in enumerate(zip(mine, theirs, strict=True)):
            got, expected = verdict(account, left), verdict(twin, right)
            outcomes.add(got["outcome"])
            where = f"rule {REFERENCE[index]}: {got['evidence']} instead of {expected['evidence']}"
            assert got["outcome"] == expected["outcome"], where
            assert comparable(got["evidence"]) == comparable(expected["evidence"]), where
        assert outcomes == {"met", "not_met", "inconclusive"}


def test_a_function_gets_the_data_of_its_rule(account: Account, bucket: str, source: str) -> None:
    registry = Registry()
    tasks: list[Task] = []

    @registry.kind("watch")
    def watch(task: Task) -> Verdict:
        tasks.append(task)
        limit = task.parameters.number("limit")
        return met(highest=float("inf"), limit=limit) if task["x"].numbers[-1].value > limit else not_met()

    account.client.data.insert(bucket, source, {"level": 6, "mode": "auto"}, timestamp=NOW)
    account.client.data.insert(bucket, source, {"level": 7}, timestamp=NOW + timedelta(microseconds=1))
    inputs = [{"key": "x", "field": "level"}, {"key": "m", "field": "mode"}]
    rule_id = rule(account, bucket, source, "watch", {"limit": 5}, inputs=inputs, windowSeconds=7200)
    Evaluator(registry, account.url, integration_key(account), ONCE).run()
    [task] = tasks
    assert (task.rule_id, task.kind, task.condition, task.bucket_id) == (rule_id, "watch", "as it says", bucket)
    assert [row.value for row in task["x"].rows] == [6, 7]
    assert [row.at for row in task["x"].rows] == [NOW, NOW + timedelta(microseconds=1)]
    assert [row.value for row in task["m"].present] == ["auto"]
    assert task["x"].end is not None
    assert task["x"].start == task["x"].end - timedelta(seconds=7200)
    with pytest.raises(KeyError, match="no input 'y'"):
        task["y"]
    entry = verdict(account, rule_id)
    # JSON has no infinity.
    assert (entry["outcome"], entry["evidence"]) == ("met", {"kind": "watch", "highest": None, "limit": 5})
    assert account.client.rules.get(rule_id)["state"] == "firing"
    assert registry.kinds == ["watch"]
    with pytest.raises(ValueError, match="twice"):
        registry.kind("watch")(watch)


def test_a_failing_function_is_inconclusive_and_logged(
    account: Account, bucket: str, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()

    @registry.kind("broken")
    def broken(task: Task) -> Verdict:
        raise ZeroDivisionError("of the function")

    @registry.kind("chatty")
    def chatty(task: Task) -> Verdict:
        return not_met(text="x" * 70_000)

    @registry.kind("unsure")
    def unsure(task: Task) -> Verdict:
        return inconclusive("it depends", because=[1])

    ids = [rule(account, bucket, source, kind, {}) for kind in registry.kinds]
    Evaluator(registry, account.url, integration_key(account), ONCE).run()
    entries = [verdict(account, rule_id) for rule_id in ids]
    assert [entry["outcome"] for entry in entries] == ["inconclusive", "not_met", "inconclusive"]
    assert "ZeroDivisionError: of the function" in str(entries[0]["evidence"])
    assert "Traceback" in caplog.text
    assert "65536 are allowed" in str(entries[1]["evidence"])
    assert entries[2]["evidence"] == {"kind": "unsure", "reason": "it depends", "because": [1]}


def test_windows_of_several_pages_are_read_whole(account: Account, bucket: str, source: str) -> None:
    registry = Registry()
    counts: list[int] = []

    @registry.kind("count")
    def count(task: Task) -> Verdict:
        counts.append(len(task.inputs[0].rows))
        return not_met()

    entries: list[Entry] = [
        {"dataSourceId": source, "timestamp": NOW - timedelta(seconds=i), "values": {"level": i}} for i in range(1000)
    ]
    for _ in range(11):
        account.client.data.insert_batch(bucket, entries)
    rule(account, bucket, source, "count", {})
    Evaluator(registry, account.url, integration_key(account), ONCE).run()
    assert counts == [11_000]


def test_several_evaluators_share_the_rules(account: Account, bucket: str, source: str) -> None:
    judged: list[str] = []
    registry = Registry()

    @registry.kind("shared")
    def shared(task: Task) -> Verdict:
        judged.append(task.rule_id)
        return not_met()

    ids = {rule(account, bucket, source, "shared", {"n": n}) for n in range(30)}
    key = integration_key(account)
    # The parameter is not read, which is a fault of its own and changes nothing here.
    threads = [threading.Thread(target=Evaluator(registry, account.url, key, ONCE).run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(judged) == 30
    assert set(judged) == ids
    assert all(verdict(account, rule_id) for rule_id in ids)


def test_a_refused_key_and_a_wrong_address_end_it(account: Account, bucket: str) -> None:
    reader = account.client.keys(bucket).create("r", "read")["key"]
    with pytest.raises(EvaluatorError, match="refuses the key"):
        Evaluator(Registry(), account.url, reader, ONCE).run()
    quick = EvaluatorOptions(once=True, claim_seconds=5, retry=Retry(backoff_seconds=6))
    with pytest.raises(EvaluatorError, match="does not list what is due"):
        Evaluator(Registry(), "http://127.0.0.1:9", "svc_i_x", quick).run()


def test_a_stop_lets_a_rule_in_progress_finish(account: Account, bucket: str, source: str) -> None:
    registry = Registry()
    begun, go_on = threading.Event(), threading.Event()

    @registry.kind("slow")
    def slow(task: Task) -> Verdict:
        begun.set()
        assert go_on.wait(30)
        return not_met()

    rule_id = rule(account, bucket, source, "slow", {})
    evaluator = Evaluator(registry, account.url, integration_key(account), EvaluatorOptions(poll_seconds=3600))
    thread = threading.Thread(target=evaluator.run)
    thread.start()
    assert begun.wait(30)
    evaluator.stop()
    go_on.set()
    thread.join(30)
    assert not thread.is_alive()
    assert verdict(account, rule_id)["outcome"] == "not_met"


SLOW = """
import sys
from tidewatch.evaluator import Registry, not_met
registry = Registry()

@registry.kind("slow")
def slow(task):
    print("begun", flush=True)
    sys.stdin.readline()
    return not_met()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_command_finish_what_it_holds(
    account: Account, bucket: str, source: str, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    rule_id = rule(account, bucket, source, "slow", {})
    with subprocess.Popen(
        [sys.executable, "-m", "tidewatch.evaluator", "slow:registry", "--url", account.url, "--poll", "3600"],
        env={**os.environ, "TIDEWATCH_KEY": integration_key(account)},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        _, errors = process.communicate("go on\n", timeout=30)
    assert process.returncode == 0, errors
    assert "not_met" in errors
    assert verdict(account, rule_id)["outcome"] == "not_met"


def test_the_command_runs_the_example_once(account: Account, bucket: str, source: str) -> None:
    rule_id = rule(account, bucket, source, "absence", {})
    done = subprocess.run(
        [sys.executable, "-m", "tidewatch.evaluator", "reference_kinds:registry", "--once"],
        env={**os.environ, "TIDEWATCH_URL": account.url, "TIDEWATCH_KEY": integration_key(account)},
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "met, triggered" in done.stderr
    assert verdict(account, rule_id)["outcome"] == "met"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere:registry", "No module named"),
        ("json:registry", "has no attribute"),
        ("json:loads", "no Registry"),
        ("json", "module:registry"),
    ],
)
def test_the_command_says_what_is_wrong_with_its_arguments(
    name: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(SystemExit) as ended:
        main([name, "--url", "http://127.0.0.1:9", "--key", "x"])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
