"""Every method of every resource, against the real server. `checking` compares each answer with its type."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from conftest import PASSWORD, Account

from tidewatch import Client, ConflictError, ForbiddenError, NotFoundError, PreconditionFailedError, ValidationError
from tidewatch.models.boards import BoardContent
from tidewatch.models.data import Query
from tidewatch.models.rules import Evaluation, RuleDraft

NOW = datetime.now(timezone.utc)
EVALUATION: Evaluation = {
    "kind": "threshold",
    "intervalSeconds": 60,
    "windowSeconds": 3600,
    "dwellSeconds": 0,
    "inputs": [{"key": "x", "field": "level"}],
    "parameters": {"operator": "gt", "value": 5},
}


def test_buckets(client: Client) -> None:
    made = client.buckets.create("hall", description="north", retention_days=30)
    assert client.buckets.get(made["_id"])["stats"]["dataSourceCount"] == 0
    assert client.buckets.update(made["_id"], description="south")["description"] == "south"
    assert client.buckets.get(made["_id"])["name"] == "hall"
    client.buckets.create("second")
    assert [bucket["name"] for bucket in client.buckets.iterate(limit=1)] == ["hall", "second"]
    page = client.buckets.list(limit=1)
    assert (page.total, page.has_more, len(page)) == (2, True, 1)
    assert client.buckets.delete(made["_id"])["deletedBucket"]["name"] == "hall"
    with pytest.raises(NotFoundError):
        client.buckets.get(made["_id"])


def test_sources(client: Client, bucket: str) -> None:
    sources = client.sources(bucket)
    made = sources.create(
        "pump", {"rpm": {"type": "number", "unit": "1/min"}}, expected_interval_seconds=60, schema_mode="extend"
    )
    assert made["expectedIntervalSeconds"] == 60
    # `None` is null, and what is left out stays.
    changed = sources.update(made["_id"], expected_interval_seconds=None)
    assert (changed["expectedIntervalSeconds"], changed["schemaMode"]) == (None, "extend")
    assert sources.get(made["_id"])["name"] == "pump"
    assert [source["name"] for source in sources.iterate()] == ["pump"]
    assert len(sources.list()) == 1
    assert sources.delete(made["_id"])["deletedDataSource"]["name"] == "pump"


def test_dimensions(client: Client, bucket: str) -> None:
    sources = client.sources(bucket)
    made = sources.create("cpu", {"usage": {"type": "number"}}, dimensions=["host"])
    for host in ("a", "b"):
        client.data.insert(bucket, made["_id"], {"usage": 0.5}, timestamp=NOW, metadata={"host": host})
    assert [one["name"] for one in sources.dimensions(made["_id"])] == ["host"]
    assert [one["value"] for one in sources.dimension_values(made["_id"], "host", prefix="a")] == ["a"]
    assert [one["dimensions"] for one in sources.series(made["_id"], {"host": "b"})] == [{"host": "b"}]


def test_keys(account: Account, bucket: str) -> None:
    keys = account.client.keys(bucket)
    made = keys.create("reader", "read", expires_at=NOW + timedelta(days=1))
    rotated = keys.rotate(made["_id"], overlap_seconds=0)
    assert rotated["key"] != made["key"]
    with Client(account.url, key=rotated["key"]) as reader, pytest.raises(ForbiddenError):
        reader.sources(bucket).create("x", {"y": {"type": "number"}})
    assert [key["name"] for key in keys.iterate()] == [key["name"] for key in keys.list()] == ["reader"]
    assert keys.delete(made["_id"])["type"] == "read"
    of_organization = account.owner.organization.keys
    made = of_organization.create("evaluator", "integration")
    of_organization.rotate(made["_id"], overlap_seconds=60)
    assert {key["type"] for key in of_organization.iterate()} == {"admin", "integration"}
    of_organization.list()
    of_organization.delete(made["_id"])


def test_points(client: Client, bucket: str, source: str) -> None:
    point = client.data.insert(bucket, source, {"level": 1.5}, timestamp=NOW, metadata={"shift": "early"})
    assert point["values"] == {"level": 1.5}
    assert point["metadata"] == {"shift": "early"}
    entries = [{"dataSourceId": source, "values": {"level": 2}}, {"dataSourceId": source, "values": {"levle": 2}}]
    stored = client.data.insert_batch(bucket, entries, idempotency_key="once")  # type: ignore[arg-type]
    assert (stored["insertedCount"], [error["index"] for error in stored["errors"]]) == (1, [1])
    assert client.data.insert_batch(bucket, entries, idempotency_key="once") == stored  # type: ignore[arg-type]
    with pytest.raises(ValidationError) as refused:
        client.data.insert_batch(bucket, entries[1:])  # type: ignore[arg-type]
    assert refused.value.body["failedCount"] == 1
    rows = client.data.query({"bucketId": bucket, "filters": {"values": {"level": {"gte": 1}}}})["data"]
    assert [row["values"]["level"] for row in rows] == [1.5, 2]
    columns = client.data.columns({"bucketId": bucket, "aggregation": ["max", "count"], "groupBy": "all"})["columns"]
    assert columns["values"]["level"] == {"max": [2], "count": [2]}
    in_shift = client.data.delete(bucket, {"metadata": {"shift": "early"}}, dry_run=True)
    assert (in_shift["deletedCount"], in_shift["dryRun"]) == (1, True)
    assert client.data.delete(bucket, {"metadata": {"shift": "early"}})["deletedCount"] == 1


def test_rows_of_all_pages(client: Client, bucket: str, source: str) -> None:
    entries = [{"dataSourceId": source, "timestamp": NOW, "values": {"level": i}} for i in range(1000)]
    for _ in range(11):
        client.data.insert_batch(bucket, entries)  # type: ignore[arg-type]
    query: Query = {"bucketId": bucket, "downsampling": False}
    assert len(list(client.data.rows(query))) == 11_000
    assert len(list(client.data.rows({**query, "limit": 10_500}))) == 10_500
    # Groups go on by offset: eleven thousand seconds of filled rows.
    grouped = list(
        client.data.rows(
            {
                "bucketId": bucket,
                "filters": {"startTime": NOW, "endTime": NOW + timedelta(seconds=10_999), "fields": ["level"]},
                "aggregation": "count",
                "groupBy": "1s",
                "fill": 0,
            }
        )
    )
    assert len(grouped) in {11_000, 11_001}
    assert len({row["timestamp"] for row in grouped}) == len(grouped)
    assert sum(row["values"]["level"] for row in grouped) == 11_000


def test_rules(client: Client, bucket: str, source: str) -> None:
    rule = client.rules.create(bucket, source, "high", natural_language_query="level > 5", evaluation=EVALUATION)
    rule_id = rule["_id"]
    assert client.rules.get(rule_id)["state"] == "armed"
    [due] = client.evaluations.due(limit=10, claim=60)
    assert due["inputs"][0]["query"]["limit"] == 10_000
    accepted = client.evaluations.verdict(rule_id, "met", evidence={"currentValue": 6})
    assert (accepted["triggered"], accepted["state"]) == (True, "firing")
    with pytest.raises(ConflictError) as second:
        client.evaluations.verdict(rule_id, "not_met")
    assert second.value.body["evaluation"]["outcome"] == "met"
    known = client.rules.acknowledge(rule_id, note="on my way")
    assert known["acknowledgement"] is not None
    assert {entry["kind"] for entry in client.rules.history(rule_id)} == {"verdict", "trigger"}
    assert len(list(client.rules.iterate_history(rule_id, limit=1))) == 2
    assert client.rules.update(rule_id, status="paused")["status"] == "paused"
    assert client.rules.update(rule_id, evaluation=None)["evaluation"] is None
    assert [one["name"] for one in client.rules.iterate(bucket)] == [one["name"] for one in client.rules.list(bucket)]
    with_url = client.rules.create(bucket, source, "low", condition="level < 1", webhook_url="http://127.0.0.1:9/")
    assert len(client.rules.deliveries(with_url["_id"])) == 0
    assert list(client.rules.iterate_deliveries(with_url["_id"])) == []
    assert client.rules.delete(rule_id)["name"] == "high"


def test_backtests(client: Client, bucket: str, source: str) -> None:
    rule = client.rules.create(bucket, source, "high", natural_language_query="level > 5", evaluation=EVALUATION)
    draft: RuleDraft = {
        "bucketId": bucket,
        "dataSourceId": source,
        "name": "draft",
        "naturalLanguageQuery": "level > 5",
        "evaluation": EVALUATION,
    }
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for tested in (rule["_id"], draft):
        page = client.rules.backtest(tested, start, start + timedelta(minutes=4), limit=2)
        assert (len(page), page.total) == (2, 5)
        cycles = list(client.rules.iterate_backtest(tested, start, start + timedelta(minutes=4), limit=2))
        assert [cycle["at"] for cycle in cycles] == [f"2026-01-01T00:0{i}:00Z" for i in range(5)]
        timeline = client.rules.backtest_verdicts(tested, [{"at": cycles[0]["at"], "outcome": "met"}])
        assert timeline[0]["triggered"]


def test_silences_and_annotations(client: Client, bucket: str, source: str) -> None:
    silence = client.silences.create(NOW + timedelta(hours=1), "maintenance", bucket_id=bucket)
    assert client.silences.get(silence["_id"])["reason"] == "maintenance"
    assert len(client.silences.list()) == len(list(client.silences.iterate())) == 1
    assert client.silences.delete(silence["_id"]) == silence["_id"]
    note = client.annotations.create(bucket, NOW, "oil changed", data_source_id=source, until=NOW + timedelta(hours=1))
    assert client.annotations.update(note["_id"], until=None)["until"] is None
    assert client.annotations.get(note["_id"])["text"] == "oil changed"
    within = client.annotations.list(bucket_id=bucket, start_time=NOW - timedelta(days=1), end_time=NOW)
    assert len(within) == len(list(client.annotations.iterate(data_source_id=source))) == 1
    assert client.annotations.delete(note["_id"]) == note["_id"]


def test_webhooks(client: Client, bucket: str) -> None:
    webhook = client.webhooks.create(
        "http://127.0.0.1:9/", ["alert.triggered"], bucket_id=bucket, retry_config={"maxRetries": 0}
    )
    webhook_id = webhook["_id"]
    assert webhook["secret"].startswith("whsec_")
    assert client.webhooks.update(webhook_id, bucket_id=None, status="paused")["bucketId"] is None
    assert client.webhooks.get(webhook_id)["status"] == "paused"
    delivery = client.webhooks.test(webhook_id)
    assert [one["_id"] for one in client.webhooks.deliveries(webhook_id)] == [delivery["_id"]]
    assert client.webhooks.redeliver(webhook_id, delivery["_id"])["event"] == "webhook.test"
    assert list(client.webhooks.iterate_deliveries(webhook_id))
    assert len(client.webhooks.list()) == len(list(client.webhooks.iterate())) == 1
    assert client.webhooks.delete(webhook_id)["url"] == "http://127.0.0.1:9/"


def test_boards(client: Client, bucket: str) -> None:
    content: BoardContent = {
        "name": "hall",
        "range": "24h",
        "panels": [
            {"title": "level", "kind": "lines", "query": {"bucketId": bucket}, "x": 0, "y": 0, "w": 12, "h": 4},
            {"title": "rules", "kind": "rules", "query": {"bucketId": bucket}, "x": 0, "y": 4, "w": 12, "h": 4},
        ],
    }
    board = client.boards.create(content)
    board_id = board["_id"]
    assert client.boards.update(board_id, name="hall 2", version=1)["version"] == 2
    with pytest.raises(PreconditionFailedError):
        client.boards.update(board_id, name="hall 3", version=1)
    assert client.boards.get(board_id)["name"] == "hall 2"
    copied = client.boards.copy(board_id, name="copy")
    imported = client.boards.import_(client.boards.export(board_id))
    assert [one["name"] for one in client.boards.iterate()] == ["hall 2", "copy", "hall 2"]
    assert client.boards.list().total == 3
    share = client.boards.share(board_id, NOW + timedelta(days=1))
    assert client.shared.get(share["token"])["name"] == "hall 2"
    assert client.shared.panel(share["token"], 0, start_time=NOW - timedelta(days=1), end_time=NOW)["data"] == []  # type: ignore[typeddict-item]
    assert client.shared.panel(share["token"], 1)["alertRules"] == []  # type: ignore[typeddict-item]
    assert len(client.boards.shares(board_id)) == len(list(client.boards.iterate_shares(board_id))) == 1
    assert client.boards.revoke_share(board_id, share["_id"]) == share["_id"]
    with pytest.raises(NotFoundError):
        client.shared.get(share["token"])
    with pytest.raises(PreconditionFailedError):
        client.boards.delete(board_id, version=1)
    assert client.boards.delete(copied["_id"])["name"] == "copy"
    client.boards.delete(imported["_id"], version=1)


def test_analytics(client: Client, bucket: str, source: str) -> None:
    client.data.insert(bucket, source, {"level": 3})
    assert client.analytics.bucket(bucket, period="24h")["summary"]["totalDataPoints"] == 1
    assert client.analytics.overview()["totals"]["dataPoints"] == 1


def test_accounts(account: Account) -> None:
    owner = account.owner
    assert owner.auth.status()["open"]
    assert owner.auth.me()["user"]["email"] == account.email
    with Client(account.url) as anyone:
        second = anyone.auth.login(account.email, PASSWORD)["token"]
    sessions = owner.auth.sessions.list()
    assert len(sessions) == len(list(owner.auth.sessions.iterate())) == 2
    assert owner.auth.sessions.get(sessions.items[0]["_id"])["_id"] == sessions.items[0]["_id"]
    [other] = [session for session in sessions if not session["current"]]
    assert owner.auth.sessions.end(other["_id"]) == other["_id"]
    with Client(account.url, token=second) as ended, pytest.raises(Exception, match="401"):
        ended.auth.me()
    renewed = owner.auth.renew()["token"]
    with Client(account.url, token=renewed) as again:
        changed = again.auth.change_password(PASSWORD, "another " + PASSWORD)["token"]
    with Client(account.url, token=changed) as again:
        assert again.auth.logout()


def test_people(account: Account) -> None:
    owner = account.owner
    organization = owner.organization
    assert organization.update(name="Tide")["name"] == organization.get()["name"] == "Tide"
    changes = organization.changes()
    assert changes is not None
    assert organization.changes(etag=changes[1]) is None
    invited = organization.invitations.create("new-" + account.email, "editor")
    assert organization.invitations.get(invited["_id"])["email"] == invited["email"]
    assert len(organization.invitations.list()) == len(list(organization.invitations.iterate())) == 1
    withdrawn = organization.invitations.create("other-" + account.email, "viewer")
    assert organization.invitations.withdraw(withdrawn["_id"]) == withdrawn["_id"]
    with Client(account.url) as anyone:
        joined = anyone.auth.accept_invitation(invited["token"], "Grace", PASSWORD)
        user_id = joined["user"]["_id"]
        assert organization.members.update(user_id, "viewer")["role"] == "viewer"
        reset = organization.members.reset_password(user_id)
        assert anyone.auth.reset_password(reset["token"], "another " + PASSWORD)["user"]["_id"] == user_id
    assert len(organization.members.list()) == len(list(organization.members.iterate())) == 2
    assert organization.members.remove(user_id) == user_id
    actions = [entry["action"] for entry in organization.audit(limit=1000)]
    assert "member.updated" in actions
    assert len(list(organization.iterate_audit(limit=2))) == len(actions)


def test_operation_and_operator(account: Account, operator_client: Client) -> None:
    client = account.client
    assert client.operation.health()["status"] == "ok"
    assert client.operation.ready()["status"] == "ready"
    assert "tidewatch_ready 1" in client.operation.metrics()
    assert client.operation.docs()["openapi"].startswith("3.1")
    mine = client.organization.get()["_id"]
    assert mine in {one["_id"] for one in operator_client.operator.iterate_organizations()}
    assert operator_client.operator.organizations(limit=1).total >= 1
    assert operator_client.operator.change_plan(mine, "Pro")["plan"]["name"] == "Pro"
    assert operator_client.operator.cluster()["nodes"]


def test_routes_without_a_method(client: Client) -> None:
    made = client.request("POST", "/api/buckets", {"name": "by hand"})
    assert client.request("GET", f"/api/buckets/{made['bucket']['_id']}")["bucket"]["name"] == "by hand"
    with pytest.raises(ValueError, match="begins with /"):
        client.request("GET", "api/buckets")
