"""The kinds of `tidewatch evaluate`, with the evaluator kit.

    TIDEWATCH_KEY=svc_i_… python -m tidewatch.evaluator reference_kinds:registry --url http://127.0.0.1:8080

The README of tidewatch says what their parameters mean.
"""

import operator
import statistics
from collections.abc import Callable
from datetime import timedelta

from tidewatch.evaluator import Finding, InvalidParameterError, Parameters, Registry, Scalar, Series, decided, undecided

registry = Registry()
OPERATORS: dict[str, Callable[[Scalar, Scalar], bool]] = {
    name: getattr(operator, {"gte": "ge", "lte": "le", "neq": "ne"}.get(name, name))
    for name in ("gt", "gte", "lt", "lte", "eq", "neq")
}


@registry.input_kind("threshold")
def threshold(series: Series, parameters: Parameters) -> Finding:
    """Rows compare with a value."""
    name, limit = parameters.one_of("operator", OPERATORS), parameters.scalar("value")
    value_type = {bool: "boolean", str: "string"}.get(type(limit), "number")
    if value_type != "number" and name not in {"eq", "neq"}:
        raise InvalidParameterError(f"a {value_type} is compared by eq or neq, only numbers have an order")
    return matching(series, parameters, value_type, lambda value: OPERATORS[name](value, limit), limit, name)


@registry.input_kind("range")
def range_(series: Series, parameters: Parameters) -> Finding:
    """Rows lie outside of a range, or within."""
    low, high = parameters.number("low"), parameters.number("high")
    inside = parameters.boolean("inside", default=False)
    if low > high:
        raise InvalidParameterError("parameter `low` must not be above `high`")
    name = "between" if inside else "outside"
    return matching(series, parameters, "number", lambda value: (low <= value <= high) is inside, [low, high], name)  # type: ignore[operator]


def matching(
    series: Series,
    parameters: Parameters,
    value_type: str,
    passes: Callable[[Scalar], bool],
    limit: object,
    name: str,
) -> Finding:
    """How many rows have to pass: parameters `match` and `minCount`."""
    match = parameters.one_of("match", ["any", "all", "last", "count"], "any")
    least = parameters.count("minCount", None)
    if (match == "count") != (least is not None):
        raise InvalidParameterError("parameter `minCount` goes with `match` = `count`")
    tested = [(row, passes(row.value)) for row in series.of_type(value_type) if row.value is not None]
    if not tested:
        return undecided(series.lacks(value_type))
    matched = sum(passed for _, passed in tested)
    is_met = {
        "any": matched > 0,
        "all": matched == len(tested),
        "last": tested[-1][1],
        "count": matched >= (least or 0),
    }
    # The newest row that says what the outcome says.
    row = next((row for row, passed in reversed(tested) if passed == is_met[match]), tested[-1][0])
    return decided(is_met[match], row, (row.value, limit, name), matched=matched)


@registry.input_kind("change")
def change(series: Series, parameters: Parameters) -> Finding:
    """The last value lies above or below the first, least or greatest."""
    direction = parameters.one_of("direction", ["increase", "decrease", "any"])
    by, percent = parameters.positive("by"), parameters.boolean("percent", default=False)
    origin = parameters.one_of("from", ["first", "min", "max"], "first")
    if (direction, origin) in {("increase", "max"), ("decrease", "min")}:
        raise InvalidParameterError("nothing lies above the max or below the min")
    rows = series.numbers
    if len(rows) <= 1:
        return undecided("one number alone shows no change" if rows else series.lacks("number"))
    first, last = rows[0], rows[-1]
    least, greatest = min(rows, key=lambda row: row.value), max(rows, key=lambda row: row.value)
    reference = {"first": first, "min": least, "max": greatest}[origin]
    amount = last.value - reference.value
    if percent and amount:
        if reference.value == 0:
            return undecided("there are no percent of a reference of 0")
        amount = amount / abs(reference.value) * 100
    is_met = {"increase": amount >= by, "decrease": amount <= -by, "any": abs(amount) >= by}[direction]
    falls = direction == "decrease" or (direction == "any" and amount < 0)
    alert = (last.value, by, "decreases_by" if falls else "increases_by")
    since = {"timestamp": reference.timestamp, "value": reference.value}
    return decided(is_met, last, alert, from_=since, **{"changePercent" if percent else "change": amount})


@registry.input_kind("absence")
def absence(series: Series, parameters: Parameters) -> Finding:
    """The newest row is older than a gap, or there is none."""
    gap_max = parameters.positive("maxGapSeconds", None)
    assert series.start is not None  # the service gives every window both bounds
    assert series.end is not None
    length = (series.end - series.start).total_seconds()
    if not series.present:
        if gap_max is not None and length < gap_max:
            return undecided("no rows in the window, and it is shorter than maxGapSeconds: make windowSeconds longer")
        return decided(True, alert=(length, length if gap_max is None else gap_max, "absent_for"))
    newest = series.present[-1]
    if gap_max is None:
        return decided(False, newest)
    longest = max(0.0, (series.end - newest.at).total_seconds())
    # Of a group, the last point is only known to lie within.
    shortest = max(0.0, (series.end - newest.at - timedelta(seconds=series.row_seconds)).total_seconds())
    if shortest > gap_max:
        return decided(True, newest, (shortest, gap_max, "absent_for"))
    if longest <= gap_max:
        return decided(False, newest, gapSeconds=longest)
    return undecided(
        "the newest group is too long to tell when its last point came: group finer", newest, gapSeconds=longest
    )


@registry.input_kind("zscore")
def zscore(series: Series, parameters: Parameters) -> Finding:
    """The newest value lies far from the mean of the others."""
    limit, points_min = parameters.positive("limit", 3.0), parameters.count("minPoints", 30, least=2)
    if not series.numbers:
        return undecided(series.lacks("number"))
    *others, newest = series.numbers
    if len(others) < points_min:
        return undecided(f"{len(others)} numbers before the newest, minPoints asks for {points_min}")
    values = [row.value for row in others]
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    distance = newest.value - mean
    score = distance / deviation if deviation else distance and float("inf") * distance
    alert = (newest.value, [mean - limit * deviation, mean + limit * deviation], "outside")
    figures = {"points": len(others), "mean": mean, "deviation": deviation, "zscore": score}
    return decided(abs(score) > limit, newest, alert, **figures)
