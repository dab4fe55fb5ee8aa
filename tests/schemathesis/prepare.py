"""Prepares the targets of the cases: an organization with objects of every kind, some of which may be deleted."""
import datetime
import json
import re
import urllib.request

PASSWORD = "correct horse battery"
# About as many as the deletions in a run; later ones are answered 404, which is correct, too.
DISPOSABLE = 12
SCHEMA = {"level": {"type": "number", "unit": "m"}, "door": {"type": "string"}, "open": {"type": "boolean"}}


class Client:
    def __init__(self, base):
        self.base = base
        self.headers = {}

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, self.headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


def evaluation():
    return {
        "kind": "threshold", "intervalSeconds": 60, "windowSeconds": 600, "inputs": [{"key": "l", "field": "level"}],
        "parameters": {"operator": "gt", "value": 3},
    }


def world(base):
    """Prepared ids and credentials by kind."""
    client = Client(base)
    signed_up = client.call("POST", "/api/auth/signup", {"email": "ada@example.com", "password": PASSWORD, "name": "Ada"})
    client.headers = {"Authorization": f"Bearer {signed_up['token']}"}
    other = Client(base).call("POST", "/api/auth/signup", {"email": "bob@example.com", "password": PASSWORD, "name": "Bob"})

    def bucket(name):
        body = {"name": name, "retentionDays": 1_000_000}
        return client.call("POST", "/api/buckets", body)["bucket"]["_id"]

    def key(path, kind):
        return client.call("POST", path, {"name": kind, "type": kind})["apiKey"]

    def source(bucket_id, name):
        body = {"name": name, "schema": SCHEMA, "schemaMode": "strict"}
        return client.call("POST", f"/api/buckets/{bucket_id}/sources", body)["dataSource"]["_id"]

    def rule(bucket_id, source_id, evaluated):
        body = {
            "bucketId": bucket_id, "dataSourceId": source_id, "name": "high",
            "naturalLanguageQuery": "level is above 3", "webhookUrl": "https://receiver.invalid/alerts",
        }
        if evaluated:
            body["evaluation"] = evaluation()
        return client.call("POST", "/api/alerts", body)["alertRule"]["_id"]

    def webhook():
        body = {"url": "https://receiver.invalid/hooks", "events": ["bucket.updated"], "status": "paused"}
        return client.call("POST", "/api/webhooks", body)["webhook"]["_id"]

    def silence(bucket_id):
        body = {"bucketId": bucket_id, "until": "2100-01-01T00:00:00Z", "reason": "maintenance"}
        return client.call("POST", "/api/silences", body)["silence"]["_id"]

    def annotation(bucket_id):
        body = {"bucketId": bucket_id, "at": "2026-01-01T00:00:00Z", "text": "filter cleaned"}
        return client.call("POST", "/api/annotations", body)["annotation"]["_id"]

    panels = []

    def board():
        body = {"name": "control room", "range": "24h", "panels": panels}
        board_id = client.call("POST", "/api/boards", body)["board"]["_id"]
        share = client.call("POST", f"/api/boards/{board_id}/share", {"expiresAt": soon})["share"]
        return board_id, share

    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=300)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def invitation(name):
        body = {"email": f"{name}@example.org", "role": "viewer"}
        return client.call("POST", "/api/organization/invitations", body)["invitation"]

    def member(name):
        body = {"token": invitation(name)["token"], "name": name, "password": PASSWORD}
        return Client(base).call("POST", "/api/auth/invitations/accept", body)["user"]["_id"]

    def session():
        own = Client(base)
        signed_in = own.call("POST", "/api/auth/login", {"email": "ada@example.com", "password": PASSWORD})
        own.headers = {"Authorization": f"Bearer {signed_in['token']}"}
        sessions = own.call("GET", "/api/auth/sessions?limit=1000")["sessions"]
        return next(session["_id"] for session in sessions if session["current"])

    kept = bucket("kept")
    kept_source = source(kept, "kept")
    points = [
        {"dataSourceId": kept_source, "values": {"level": n % 7, "door": "shut", "open": n % 2 == 0}, "metadata": {"n": n}}
        for n in range(50)
    ]
    client.call("POST", "/api/data/batch", {"bucketId": kept, "dataPoints": points})
    panels.extend([
        {"title": "level", "kind": "lines", "query": {"bucketId": kept}, "x": 0, "y": 0, "w": 6, "h": 4},
        {"title": "rules", "kind": "rules", "query": {"bucketId": kept}, "x": 6, "y": 0, "w": 6, "h": 4},
    ])
    kept_board, kept_share = board()
    kept_webhook = webhook()
    delivery = client.call("POST", f"/api/webhooks/{kept_webhook}/test")["delivery"]["_id"]
    with urllib.request.urlopen(base + "/", timeout=30) as page:
        assets = re.findall(r'"/assets/([^"]+)"', page.read().decode())
    many = range(DISPOSABLE)
    return {
        "adminKey": key("/api/organization/keys", "admin")["key"],
        "token": signed_up["token"],
        "otherToken": other["token"],
        "password": PASSWORD,
        "organization": [other["organization"]["_id"]],
        "bucket": [kept],
        "source": [kept_source],
        "rule": [rule(kept, kept_source, evaluated=False)],
        "dueRule": [rule(kept, kept_source, evaluated=True) for _ in many],
        "silence": [silence(kept)],
        "annotation": [annotation(kept)],
        "board": [kept_board],
        "link": [kept_share["token"]],
        "panels": panels,
        "soon": soon,
        "webhook": [kept_webhook],
        "delivery": [delivery],
        "asset": assets,
        "disposableBucket": [bucket(f"disposable {n}") for n in many],
        "disposableBucketKey": [key(f"/api/buckets/{kept}/keys", "read")["_id"] for _ in many],
        "disposableOrganizationKey": [key("/api/organization/keys", "integration")["_id"] for _ in many],
        "disposableSource": [source(kept, f"disposable {n}") for n in many],
        "disposableRule": [rule(kept, kept_source, evaluated=False) for _ in many],
        "disposableSilence": [silence(kept) for _ in many],
        "disposableAnnotation": [annotation(kept) for _ in many],
        "disposableBoard": [board()[0] for _ in many],
        "disposableShare": [client.call("POST", f"/api/boards/{kept_board}/share", {"expiresAt": soon})["share"]["_id"] for _ in many],
        "disposableWebhook": [webhook() for _ in many],
        "invitation": [invitation("kept")["_id"]],
        "disposableInvitation": [invitation(f"invited-{n}")["_id"] for n in many],
        "disposableMember": [member(f"member-{n}") for n in many],
        "session": [session() for _ in many],
    }
