"""Questions as Grafana's data source for Prometheus asks them, with the configuration of examples/grafana."""
import json
import math
import string
import urllib.parse
import urllib.request
from typing import Any

import yaml
from agent import EXAMPLES

# Sums may be added up in another order.
TOLERANCE = 1e-9
Series = dict[frozenset[tuple[str, str]], dict[float, float]]


class Source:
    """The provisioned data source."""

    def __init__(self, base: str, key: str) -> None:
        text = (EXAMPLES / "grafana" / "tidewatch.yaml").read_text()
        # As Grafana does, values are filled in after the file is read.
        [source] = yaml.safe_load(text)["datasources"]

        def filled(value: str) -> str:
            return string.Template(value).substitute(TIDEWATCH_URL=base, TIDEWATCH_KEY=key)

        self.url = filled(source["url"])
        self.method = source["jsonData"]["httpMethod"]
        self.headers = {source["jsonData"]["httpHeaderName1"]: filled(source["secureJsonData"]["httpHeaderValue1"])}
        assert (source["type"], source["access"], self.method) == ("prometheus", "proxy", "POST"), source

    def ask(self, route: str, parameters: dict[str, str], method: str = "POST") -> Any:
        encoded = urllib.parse.urlencode(parameters)
        form = {"Content-Type": "application/x-www-form-urlencoded", **self.headers}
        url = f"{self.url}/api/v1/{route}"
        request = urllib.request.Request(url, encoded.encode(), form)
        if method == "GET":
            request = urllib.request.Request(f"{url}?{encoded}", headers=self.headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"]

    def faults(self, metrics: list[str], start: float, end: float) -> list[str]:
        """What "Save & test" and the query builder ask."""
        faults = []
        test = self.ask("query", {"query": "1+1", "time": f"{end:.3f}"})
        if test["result"][1] != "2":
            faults.append(f"1+1 is {test}")
        range_ = {"start": f"{start:.3f}", "end": f"{end:.3f}"}
        names = self.ask("label/__name__/values", range_, "GET")
        if names != metrics:
            faults.append(f"names of metrics differ: {sorted(set(names) ^ set(metrics))}")
        labels = self.ask("labels", {**range_, "match[]": "up"})
        if labels != ["__name__", "instance", "job"]:
            faults.append(f"labels of up: {labels}")
        version = self.ask("status/buildinfo", {}, "GET")["version"]
        if tuple(map(int, version.split(".")[:2])) < (2, 42):
            faults.append(f"a version for which Grafana has less functions: {version}")
        return faults


def series_of(data: dict[str, Any]) -> Series:
    assert data["resultType"] == "matrix", data["resultType"]
    return {
        frozenset(series["metric"].items()): {round(at, 3): float(value) for at, value in series["values"]}
        for series in data["result"]
    }


def differences(question: str, wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Where two answers differ."""
    theirs, ours = series_of(wanted), series_of(found)
    faults = [f"{question}: series that only one has: {dict(labels)}" for labels in theirs.keys() ^ ours.keys()]
    for labels in theirs.keys() & ours.keys():
        steps = theirs[labels].keys() | ours[labels].keys()
        for at in sorted(steps):
            pair = theirs[labels].get(at), ours[labels].get(at)
            if None in pair or not is_equal(*pair):  # type: ignore[arg-type]
                faults.append(f"{question} {dict(labels)} at {at}: Prometheus has {pair[0]}, tidewatch {pair[1]}")
    return faults


def is_equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=TOLERANCE)
