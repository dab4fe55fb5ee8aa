"""An organization with points, rules that are due, and a key of each kind, for the tests of `tidewatch mcp`."""
import datetime
import json
import urllib.request

# Above every value, and below the newest one.
RULES = {"calm": 1_000, "overheated": 100}
POINTS = 300
HOTTEST = 123.5


class World:
    def __init__(self, base):
        self.base = base
        self.headers = {}
        account = {"email": "ada@example.com", "password": "correct horse battery", "name": "Ada"}
        token = self.call("POST", "/api/auth/signup", account)["token"]
        self.headers = {"Authorization": f"Bearer {token}"}
        self.bucket = self.call("POST", "/api/buckets", {"name": "plant", "retentionDays": 30})["bucket"]["_id"]
        schema = {"temperature": {"type": "number", "unit": "°C"}, "door": {"type": "string"}}
        source = {"name": "oven", "schema": schema}
        self.source = self.call("POST", f"/api/buckets/{self.bucket}/sources", source)["dataSource"]["_id"]
        self.ingest()
        self.rules = {name: self.rule(name, limit) for name, limit in RULES.items()}
        self.admin, self.integration = (self.key("/api/organization/keys", kind) for kind in ("admin", "integration"))
        self.read = self.key(f"/api/buckets/{self.bucket}/keys", "read")

    def ingest(self):
        now = datetime.datetime.now(datetime.UTC)
        times = [now - datetime.timedelta(seconds=second) for second in range(POINTS, 0, -1)]
        values = [20.0] * (POINTS - 1) + [HOTTEST]
        points = [
            {"dataSourceId": self.source, "timestamp": time.isoformat(), "values": {"temperature": value}}
            for time, value in zip(times, values, strict=True)
        ]
        self.call("POST", "/api/data/batch", {"bucketId": self.bucket, "dataPoints": points})

    def rule(self, name, limit):
        body = {
            "bucketId": self.bucket, "dataSourceId": self.source, "name": name,
            "naturalLanguageQuery": f"temperature is above {limit}", "webhookUrl": "https://receiver.invalid/alerts",
            "evaluation": {
                "kind": "threshold", "intervalSeconds": 3600, "windowSeconds": 3600,
                "parameters": {"operator": "gt", "value": limit}, "inputs": [{"key": "t", "field": "temperature"}],
            },
        }
        return self.call("POST", "/api/alerts", body)["alertRule"]["_id"]

    def key(self, path, kind):
        return self.call("POST", path, {"name": kind, "type": kind})["apiKey"]["key"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
