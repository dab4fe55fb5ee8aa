#!/usr/bin/env python3
"""Judges the alert rules that are due: kinds `threshold` and `range`, any row of any input; the rest is inconclusive.

usage: TIDEWATCH_KEY=svc_i_… evaluator.py BASE_URL [SECONDS]

Polls every SECONDS, or once without them. For an evaluator of your own, replace `judge`. Needs nothing but Python.
"""
import json
import operator
import os
import sys
import time
import urllib.error
import urllib.request

OPERATORS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
             "eq": operator.eq, "neq": operator.ne}


def call(base, path, body=None):
    """Status and JSON of the answer. A busy service is asked again a few times, one out of reach until it is back."""
    headers = {"X-API-Key": os.environ["TIDEWATCH_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(base + path, body and json.dumps(body).encode(), headers)
    waits = iter((1, 2, 4, 8))
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                sys.exit(f"the service refuses the key: {error}")
            wait = next(waits, None)
            if wait is None or (error.code != 429 and error.code < 500):
                return error.code, json.load(error)
            time.sleep(int(error.headers.get("Retry-After", wait)))
        except OSError:
            time.sleep(next(waits, 16))


def read(base, query):
    """All rows of a window: the query goes out unchanged, then with the place to go on from."""
    rows, more = [], True
    while more:
        status, page = call(base, "/api/data/query", query)
        if status != 200:
            raise ValueError(page["message"])
        rows, more = rows + page["data"], page["metadata"]["hasMore"]
        cursor = page["metadata"].get("nextCursor")
        query = query | ({"cursor": cursor} if cursor else {"offset": len(rows)})
    return rows


def judge(kind, parameters, windows):
    """The outcome, and the evidence that tells people why. What does not tell for sure is never `not_met`."""
    if kind == "threshold" and parameters.keys() == {"operator", "value"}:
        name, threshold = parameters["operator"], parameters["value"]
        fires = lambda value: OPERATORS[name](value, threshold)
    elif kind == "range" and parameters.keys() == {"low", "high"}:
        name, threshold = "outside", [parameters["low"], parameters["high"]]
        fires = lambda value: not threshold[0] <= value <= threshold[1]
    else:
        return "inconclusive", {"kind": kind, "reason": "this kind, or one of its parameters, is not known here"}
    for field, rows in windows:
        for row in reversed(rows):
            value = row["values"][field]
            if fires(value):
                return "met", {"kind": kind, "currentValue": value, "threshold": threshold, "operator": name,
                               "dataPoint": {"timestamp": row["timestamp"], "values": row["values"]}}
    counts = [len(rows) for _, rows in windows]
    return "not_met" if all(counts) else "inconclusive", {"kind": kind, "rows": counts}


def main(base, seconds=None):
    while True:
        status, due = call(base, "/api/evaluations/due?claim=60")
        if status != 200:
            sys.exit(f"no list of due rules: {due}")
        for rule in due["evaluations"]:
            try:
                windows = [(entry["field"], read(base, entry["query"])) for entry in rule["inputs"]]
                outcome, evidence = judge(rule.get("kind"), rule["parameters"], windows)
            except (KeyError, TypeError, ValueError) as error:
                outcome, evidence = "inconclusive", {"kind": rule.get("kind"), "reason": repr(error)}
            verdict = {"outcome": outcome, "evidence": evidence}
            status, answer = call(base, f"/api/evaluations/{rule['ruleId']}/verdict", verdict)
            print(rule["name"], outcome, "" if status == 200 else answer["message"], flush=True)
        if seconds is None:
            return
        time.sleep(float(seconds))


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3 or "TIDEWATCH_KEY" not in os.environ:
        sys.exit(__doc__)
    main(*sys.argv[1:])
