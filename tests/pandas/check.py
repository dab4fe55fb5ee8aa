"""Asks a server random questions about points around clock changes, and compares its answers with those of pandas."""
import argparse
import csv
import datetime
import json
import math
import pathlib
import random
import sys
import urllib.error
import urllib.request

import numpy
import pandas

import reference
from reference import DAY, MINUTE

SCHEMA = {
    "level": {"type": "number"}, "counter": {"type": "number"}, "odd name": {"type": "number"},
    "state": {"type": "string"}, "open": {"type": "boolean"},
}
KINDS = {name: field["type"] for name, field in SCHEMA.items()}
# Zones, and a date near a change of their clocks: by half an hour, at midnight, in winter, by a whole day.
ZONES = [
    ("America/New_York", "2027-03-14"), ("America/New_York", "2027-11-07"), ("Europe/Stockholm", "2027-10-31"),
    ("Australia/Lord_Howe", "2027-04-04"), ("Australia/Lord_Howe", "2027-10-03"), ("America/St_Johns", "2027-03-14"),
    ("Asia/Beirut", "2027-03-28"), ("Europe/Dublin", "2027-10-31"), ("Atlantic/Azores", "2027-03-28"),
    ("Asia/Kathmandu", "2027-05-01"), ("Africa/Cairo", "2027-10-29"), ("Pacific/Chatham", "2027-09-26"), ("UTC", "2027-05-01"),
    ("Pacific/Apia", "2011-12-30"),
]
STEPS = [
    "minute", "hour", "day", "week", "month", "quarter", "year", "all", "15m", "7m", "90m", "2h", "5h", "6h", "36h", "2d", "3w",
]
AGGREGATIONS = sorted(reference.NUMERIC | reference.ANY | {"trueShare"})
EXPRESSIONS = [
    ("ratio", "level / counter", lambda row: divide(row["level"], row["counter"])),
    ("sum of both", "level + `odd name` * 2", lambda row: row["level"] + row["odd name"] * 2),
    ("bound", "max(min(level, 3), -abs(counter)) - 1.5e1", lambda row: max(min(row["level"], 3), -abs(row["counter"])) - 15),
    ("whole", "round(counter / 0)", lambda row: None),
]
EXPRESSION_FIELDS = {"ratio": ["level", "counter"], "sum of both": ["level", "odd name"], "bound": ["level", "counter"], "whole": ["counter"]}


def divide(one, other):
    return one / other if other != 0 else None


class Client:
    def __init__(self, base):
        self.base, self.headers = base, {}

    def call(self, path, body):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), self.headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            sys.exit(f"{path}: {error.code} {error.read().decode()[:1000]} for {json.dumps(body)[:1000]}")


def iso(ns):
    whole, rest = divmod(int(ns), 10**9)
    text = datetime.datetime.fromtimestamp(whole, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:09d}Z"


def ns_of(text):
    return pandas.Timestamp(text).as_unit("ns").value


class World:
    """A bucket with three sources and the same points as a frame."""

    def __init__(self, client, rng, zone, date):
        self.client, self.rng, self.zone = client, rng, zone
        name = f"{zone} {date}"
        self.bucket = client.call("/api/buckets", {"name": name, "retentionDays": 1_000_000})["bucket"]["_id"]
        body = {"schema": SCHEMA, "schemaMode": "strict"}
        path = f"/api/buckets/{self.bucket}/sources"
        self.sources = sorted(client.call(path, {"name": f"s{i}", **body})["dataSource"]["_id"] for i in range(3))
        change = ns_of(date)
        self.first_ns, self.last_ns = change - 6 * DAY, change + 6 * DAY
        is_past = change < pandas.Timestamp.now("UTC").value
        self.send(self.points(150 if is_past else 900), is_past)
        self.clock = reference.Clock(zone, self.first_ns - 420 * DAY, self.last_ns + 420 * DAY)

    def points(self, count):
        rng, counter, points = self.rng, dict.fromkeys(self.sources, 0.0), []
        for source in self.sources:
            at_ns = self.first_ns
            for _ in range(count):
                # Sometimes dense, sometimes with gaps, now and then at the same instant.
                at_ns += rng.choice([0, MINUTE // 6, MINUTE, 7 * MINUTE, 20 * MINUTE, 150 * MINUTE]) if rng.random() > 0.02 else DAY
                if at_ns > self.last_ns:
                    break
                counter[source] = 0.0 if rng.random() < 0.02 else counter[source] + rng.randrange(50)
                values = {
                    "level": round(rng.uniform(-20, 20), 2), "counter": counter[source], "odd name": float(rng.randrange(5)),
                    "state": rng.choice(["on", "off", "", "später"]), "open": rng.random() < 0.5,
                }
                kept = {name: value for name, value in values.items() if rng.random() < 0.8}
                points.append({"source": source, "time": at_ns, **(kept or {"level": values["level"]})})
        rng.shuffle(points)
        return points

    def send(self, points, one_by_one):
        entries = [
            {
                "dataSourceId": point["source"], "timestamp": iso(point["time"]),
                "values": {name: point[name] for name in KINDS if name in point},
            }
            for point in points
        ]
        if one_by_one:
            for entry in entries:
                self.client.call("/api/data", {"bucketId": self.bucket, **entry})
        else:
            send(self.client, self.bucket, entries, 500)
        self.frame = pandas.DataFrame(points).assign(sequence=range(len(points)))
        for name in KINDS:
            self.frame[name] = self.frame[name].astype(object) if name in self.frame else None

    def question(self):
        rng = self.rng
        several = rng.random() < 0.6
        aggregations = rng.sample(AGGREGATIONS, rng.randrange(1, 9)) if several else [rng.choice(AGGREGATIONS)]
        fields = [name for name in KINDS if rng.random() < 0.5 and any(reference.covers(a, KINDS[name]) for a in aggregations)]
        start_ns = self.first_ns + rng.randrange(0, 5 * DAY)
        end_ns = rng.randrange(start_ns + MINUTE, self.last_ns + DAY)
        if rng.random() < 0.3:
            start_ns, end_ns = start_ns // (60 * MINUTE) * 60 * MINUTE, end_ns // DAY * DAY + DAY
        step = rng.choice(STEPS)
        if step == "minute" or (step == "7m" and end_ns - start_ns > 2 * DAY):
            end_ns = start_ns + rng.randrange(MINUTE, DAY)
        body = {
            "bucketId": self.bucket, "aggregation": aggregations if several else aggregations[0], "groupBy": step,
            "timezone": self.zone, "limit": 10_000,
            "filters": {"startTime": iso(start_ns), "endTime": iso(end_ns)},
        }
        if fields:
            body["filters"]["fields"] = fields
        if rng.random() < 0.3:
            body["filters"]["dataSourceIds"] = rng.sample(self.sources, 2)
        if rng.random() < 0.3:
            body["filters"]["values"] = {"level": {"gt": -10}}
        if rng.random() < 0.4:
            body["mergeSources"] = True
        if rng.random() < 0.5:
            body["sort"] = "desc"
        if rng.random() < 0.4:
            body["fill"] = rng.choice(["null", "previous", "linear", 7.5])
        if rng.random() < 0.3:
            body["compare"] = {"offset": rng.choice(["1d", "2d", "1w", "36h", "90m", "17s"])}
        if rng.random() < 0.3:
            chosen = rng.sample(EXPRESSIONS, 2)
            body["expressions"] = [{"name": name, "expression": text} for name, text, _ in chosen]
        if rng.random() < 0.2:
            by = rng.choice(sorted(reference.NUMERIC | {"count", "distinct"}))
            body["top"] = {"n": rng.randrange(1, 4), "by": by, "field": "level", "order": rng.choice(["asc", "desc"])}
        if rng.random() < 0.3:
            body["limit"], body["offset"] = rng.randrange(1, 30), rng.randrange(0, 30)
        return body

    def expected(self, body):
        filters = body["filters"]
        start_ns, end_ns = ns_of(filters["startTime"]), ns_of(filters["endTime"])
        several = isinstance(body["aggregation"], list)
        aggregations = body["aggregation"] if several else [body["aggregation"]]
        listed = filters.get("fields") or list(KINDS)
        named = body.get("expressions", [])
        operands = {field for item in named for field in EXPRESSION_FIELDS[item["name"]]}
        fields = [name for name in KINDS if name in listed or name in operands]
        merged = body.get("mergeSources", False)
        sources = sorted(filters.get("dataSourceIds", self.sources))
        frame = self.frame[self.frame["source"].isin(sources)]
        if "values" in filters:
            frame = frame[frame["level"].map(lambda value: value == value and value is not None and value > -10)]
        if body["groupBy"] == "all":
            starts = [start_ns]
        else:
            starts = self.clock.starts(body["groupBy"])
            starts = starts[(starts > start_ns) & (starts <= end_ns) | (starts == starts[starts <= start_ns][-1])]
        if "top" in body and not merged:
            sources = self.top(body["top"], frame, start_ns, end_ns)
            frame = frame[frame["source"].isin(sources)]
        groups = [""] if merged else sources
        compute = lambda steps, first, last: self.compute(
            frame[frame["time"].between(first, last)], steps, fields, aggregations, merged
        )
        steps = reference.Steps(starts, starts if body["groupBy"] != "all" else [-(2**63)], end_ns)
        if body["groupBy"] == "all":
            steps.bounds = numpy.array([start_ns])
        found = compute(steps, start_ns, end_ns)
        found = {(int(starts[step]), group): values for (step, group), values in found.items()}
        if "fill" in body:
            slots = [
                ((field, a), KINDS[field] == "number" or a not in ("first", "last"))
                for field in fields for a in aggregations if reference.covers(a, KINDS[field])
            ]
            found = reference.filled(found, [int(start) for start in starts], groups, lambda _: slots, body["fill"])
        previous = {}
        if "compare" in body:
            earlier = self.earlier(body["compare"]["offset"])
            last_ns = earlier(end_ns)
            before = reference.Steps(starts, [earlier(int(start)) for start in starts], last_ns)
            previous = compute(before, earlier(start_ns), last_ns)
            previous = {(int(starts[step]), group): values for (step, group), values in previous.items()}
        rows = []
        for key in sorted(found, reverse=body.get("sort") == "desc"):
            row = {"time": key[0], "source": key[1]}
            row["values"] = self.shown(found[key], listed, named, aggregations, several)
            has_any = any(field in listed for field, _ in found[key])
            results = [row["values"][item["name"]] for item in named]
            results = [value for result in results for value in (result.values() if several else [result])]
            if "fill" not in body and not has_any and all(value is None for value in results):
                continue
            if "compare" in body:
                stood = previous.get(key, {})
                row["previous"] = self.shown(stood, listed, named, aggregations, several) if stood else {}
            rows.append(row)
        offset = body.get("offset", 0)
        return rows[offset : offset + body["limit"]]

    def earlier(self, offset):
        if offset[-1] in "dw":
            days = reference.length_ns(offset) // DAY
            return lambda at_ns: self.clock.earlier(at_ns, days)
        return lambda at_ns: at_ns - reference.length_ns(offset)

    def compute(self, frame, steps, fields, aggregations, merged):
        found = {}
        for field in fields:
            by_key = reference.aggregate(frame, steps, field, KINDS[field], aggregations, merged)
            for key, values in by_key.items():
                named = {(field, name): value for name, value in values.items()}
                if named:
                    found.setdefault(key, {}).update(named)
        return found

    def top(self, top, frame, start_ns, end_ns):
        steps = reference.Steps([start_ns], [start_ns], end_ns)
        frame = frame[frame["time"].between(start_ns, end_ns)]
        found = reference.aggregate(frame, steps, "level", "number", [top["by"]], False)
        values = [(values[top["by"]], source) for (_, source), values in found.items() if values[top["by"]] is not None]
        sign = 1 if top["order"] == "asc" else -1
        values.sort(key=lambda pair: (sign * pair[0], pair[1]))
        return sorted(source for _, source in values[: top["n"]])

    def shown(self, values, listed, named, aggregations, several):
        shown = {}
        for (field, aggregation), value in values.items():
            if field in listed:
                shown.setdefault(field, {})[aggregation] = value
        for item in named:
            evaluate = next(function for name, _, function in EXPRESSIONS if name == item["name"])
            for aggregation in aggregations:
                row = {field: values.get((field, aggregation)) for field in EXPRESSION_FIELDS[item["name"]]}
                is_missing = any(value is None or isinstance(value, (str, bool)) for value in row.values())
                shown.setdefault(item["name"], {})[aggregation] = None if is_missing else evaluate(row)
        return shown if several else {field: next(iter(of_field.values())) for field, of_field in shown.items()}

    def check(self, body):
        answer = self.client.call("/api/data/query", body)["data"]
        expected = self.expected(body)
        context = f"{json.dumps(body)}\n"
        assert len(answer) == len(expected), f"{context}{len(answer)} rows for {len(expected)}\n{answer[:3]}\n{expected[:3]}"
        for row, wanted in zip(answer, expected):
            assert ns_of(row["timestamp"]) == wanted["time"], f"{context}{row}\n{wanted} {iso(wanted['time'])}"
            assert row.get("dataSourceId", "") == wanted["source"], f"{context}{row}\n{wanted}"
            for member in ("values", "previous"):
                same = equal(row.get(member), wanted.get(member))
                assert same, f"{context}{member}: {json.dumps(row)}\nexpected {wanted} at {iso(wanted['time'])}"
        return len(answer)


def send(client, bucket, entries, at_a_time):
    for start in range(0, len(entries), at_a_time):
        batch = {"bucketId": bucket, "dataPoints": entries[start : start + at_a_time]}
        answer = client.call("/api/data/batch", batch)
        assert "failedCount" not in answer, answer


def equal(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


def check_series(client, path):
    """A real series: quantiles, spread and growth by hour and day, exactly."""
    with open(path, encoding="utf-8") as lines:
        rows = [(ns_of(row["timestamp"] + "Z"), float(row["value"])) for row in csv.DictReader(lines)]
    # Batches take no old points.
    shift = (pandas.Timestamp.now("UTC").value - rows[0][0]) // (7 * DAY) * 7 * DAY + 7 * DAY
    bucket = client.call("/api/buckets", {"name": path.stem, "retentionDays": 1_000_000})["bucket"]["_id"]
    schema = {"value": {"type": "number"}}
    source = client.call(f"/api/buckets/{bucket}/sources", {"name": "series", "schema": schema})["dataSource"]["_id"]
    entries = [{"dataSourceId": source, "timestamp": iso(at + shift), "values": {"value": value}} for at, value in rows]
    send(client, bucket, entries, 1_000)
    frame = pandas.DataFrame({"at": [at + shift for at, _ in rows], "value": [value for _, value in rows]})
    compared = 0
    for step in ("1h", "1D"):
        body = {"bucketId": bucket, "aggregation": ["p5", "median", "p99.9", "stddev", "distinct"], "groupBy": step.lower(), "limit": 10_000}
        answer = client.call("/api/data/query", body)["data"]
        by_step = frame.groupby(frame["at"] // reference.length_ns(step.lower()))["value"]
        for row, (number, values) in zip(answer, by_step, strict=True):
            assert ns_of(row["timestamp"]) == number * reference.length_ns(step.lower())
            found = row["values"]["value"]
            expected = {
                "p5": values.quantile(0.05), "median": values.median(), "p99.9": values.quantile(0.999),
                "stddev": values.std() if len(values) > 1 else None, "distinct": values.nunique(),
            }
            assert equal(found, expected), f"{path.name}: {row} {expected}"
            compared += 1
    return compared


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--questions", type=int, default=25, help="for each zone")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="directory of series")
    arguments = parser.parse_args()
    client = Client(arguments.base)
    account = {"email": "ada@example.com", "password": "correct horse battery", "name": "Ada"}
    client.headers = {"Authorization": f"Bearer {client.call('/api/auth/signup', account)['token']}"}
    rows = sum(check_series(client, path) for path in sorted(arguments.data.glob("*.csv")))
    for number, (zone, date) in enumerate(ZONES):
        world = World(client, random.Random(arguments.seed * 100 + number), zone, date)
        rows += sum(world.check(world.question()) for _ in range(arguments.questions))
    print(f"pandas: {rows} rows of {len(ZONES) * arguments.questions} questions are equal, seed {arguments.seed}")


if __name__ == "__main__":
    main()
