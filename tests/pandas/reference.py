"""Answers to grouped queries, computed with pandas from all points: steps by reading a zone's clock at every minute."""
import math
import re

import numpy
import pandas

MINUTE = 60 * 10**9
DAY = 1_440 * MINUTE
UNITS = {"s": 10**9, "m": MINUTE, "h": 60 * MINUTE, "d": DAY, "w": 7 * DAY}
NAMED = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
MONDAY = 4 * DAY
NUMERIC = {
    "avg", "sum", "min", "max", "range", "stddev", "median", "delta", "increase", "rate", "timeAvg", "p5", "p90", "p99.9",
}
ANY = {"count", "first", "last", "distinct"}


def covers(aggregation, kind):
    if aggregation in ANY:
        return True
    return kind == ("boolean" if aggregation == "trueShare" else "number")


def length_ns(text):
    text = NAMED.get(text, text)
    return int(text[:-1]) * UNITS[text[-1]]


class Clock:
    """What a zone's clock shows at each minute of a range."""

    def __init__(self, zone, first_ns, last_ns):
        self.first_ns = first_ns // DAY * DAY - 3 * DAY
        self.instants = numpy.arange(self.first_ns, last_ns + 3 * DAY, MINUTE)
        index = pandas.DatetimeIndex(self.instants, tz="UTC").tz_convert(zone)
        self.readings = index.tz_localize(None).as_unit("ns").asi8.copy()
        # Upper bounds of the readings before each minute.
        self.reached = numpy.maximum.accumulate(numpy.concatenate([self.readings[:1], self.readings[:-1] + MINUTE]))

    def starts(self, step):
        """The instants at which steps begin, ascending."""
        if step in MONTHS or length_ns(step) % DAY == 0:
            labels = self.dates(step)
            # A date begins when the clock shows it for the first time.
            highest = numpy.maximum.accumulate(labels)
            begins = numpy.concatenate([[False], highest[1:] > highest[:-1]])
        elif length_ns(step) % UNITS["h"] == 0:
            length = length_ns(step)
            labels = (self.readings - MONDAY) // length
            at_beginning = (self.readings - MONDAY) % length == 0
            skipped = numpy.concatenate([[False], labels[1:] > labels[:-1]])
            begins = at_beginning | skipped
        else:
            length = length_ns(step)
            first = (self.first_ns - MONDAY) // length * length + MONDAY
            return numpy.arange(first, self.instants[-1], length)
        return self.instants[begins]

    def dates(self, step):
        days = self.readings // DAY
        if step in MONTHS:
            months = days.astype("datetime64[D]").astype("datetime64[M]").astype(numpy.int64)
            return months // MONTHS[step]
        return (days - 4) // (length_ns(step) // DAY)

    def earlier(self, at_ns, days):
        """The instant at which the clock has first shown what it shows at another one, days before."""
        reading = self.reached[(at_ns - self.first_ns) // MINUTE] + at_ns % MINUTE - days * DAY
        upper = numpy.maximum.accumulate(self.readings + MINUTE)
        minute = int(numpy.searchsorted(upper, reading, side="right"))
        return int(max(self.instants[minute], self.instants[minute] + reading - self.readings[minute]))


class Steps:
    """Steps with the bounds of the points that they contain."""

    def __init__(self, starts, bounds, end_ns):
        self.starts, self.bounds, self.end_ns = list(starts), numpy.array(bounds), end_ns

    def of(self, times):
        return numpy.searchsorted(self.bounds, times, side="right") - 1

    def end(self, step):
        following = self.bounds[step + 1] if step + 1 < len(self.bounds) else math.inf
        return min(following, self.end_ns)


def aggregate(frame, steps, field, kind, aggregations, merged):
    """Values by (step, source): a dictionary for each with the values of the aggregations that cover the field."""
    points = frame[frame[field].notna()].sort_values(["time", "sequence"])
    if points.empty:
        return {}
    points = points.assign(step=steps.of(points["time"].to_numpy()), group="" if merged else points["source"])
    found = {}
    ordered = {}
    if kind != "string" and {"increase", "rate", "timeAvg", "trueShare"} & set(aggregations):
        occurring = sorted(points["step"].unique()) if merged else []
        for (_, source), own in points.groupby(["group", "source"]):
            parts = in_order(own, steps, field)
            for step in occurring:
                # A value holds through steps in which other sources have values.
                if step not in parts and min(parts) < step < max(parts):
                    value = own[own["step"] < step][field].astype(float).iloc[-1]
                    span = (steps.end(step) - steps.bounds[step]) / 1e9
                    parts[step] = {"increase": None, "rate": None, "held": value * span, "covered": span}
            for step, values in parts.items():
                key = (step, "" if merged else source)
                ordered.setdefault(key, []).append(values)
    for (step, group), own in points.groupby(["step", "group"]):
        values = own[field]
        numbers = values.astype(float) if kind != "string" else None
        found[(step, group)] = {
            name: one(name, values, numbers, ordered.get((step, group)))
            for name in aggregations
            if covers(name, kind)
        }
    return found


def one(name, values, numbers, ordered):
    if name == "count":
        return len(values)
    if name == "distinct":
        return values.nunique()
    if name in ("first", "last"):
        return values.iloc[0 if name == "first" else -1]
    if name in ("avg", "sum", "min", "max"):
        return getattr(numbers, {"avg": "mean"}.get(name, name))()
    if name == "range":
        return numbers.max() - numbers.min()
    if name == "stddev":
        return numbers.std() if len(numbers) > 1 else None
    if name == "delta":
        return numbers.iloc[-1] - numbers.iloc[0]
    if name == "median" or re.fullmatch(r"p[0-9.]+", name):
        return numbers.quantile(0.5 if name == "median" else float(name[1:]) / 100)
    if name in ("increase", "rate"):
        parts = [part[name] for part in ordered if part[name] is not None]
        return sum(parts) if parts else None
    covered = sum(part["covered"] for part in ordered)
    return sum(part["held"] for part in ordered) / covered if covered > 0 else numbers.iloc[-1]


def in_order(points, steps, field):
    """Of one source, by step: growth, its rate, and seconds for which values held with their products."""
    times, found = points["time"].to_numpy(), {}
    values, of_step = points[field].astype(float).to_numpy(), points["step"].to_numpy()
    for step in dict.fromkeys(of_step):
        places = numpy.flatnonzero(of_step == step)
        first, last = places[0], places[-1]
        grown = [values[i] - values[i - 1] if values[i] >= values[i - 1] else values[i] for i in places if i > 0]
        seconds = (times[last] - times[max(first - 1, 0)]) / 1e9
        held = covered = 0.0
        for i in range(max(first - 1, 0), last + 1):
            start = max(times[i], steps.bounds[step])
            following = times[i + 1] if i + 1 < len(times) else math.inf
            span = (min(following, steps.end(step)) - start) / 1e9
            if span > 0:
                covered, held = covered + span, held + span * values[i]
        increase = sum(grown) if grown else None
        found[step] = {
            "increase": increase,
            "rate": increase / seconds if grown and seconds > 0 else None,
            "held": held,
            "covered": covered,
        }
    return found


def filled(found, steps, groups, names, fill):
    """Adds what stands in missing steps: `found` has values by (step, group) and name, `names` those of a group."""
    rows = {}
    for group in groups:
        for name, is_numeric in names(group):
            known = pandas.Series(
                {step: values[name] for (step, other), values in found.items() if other == group and name in values},
                dtype=object,
            )
            present = known[known.notna()].sort_index()
            for step in steps:
                if step in known.index:
                    value = known[step]
                elif fill == "previous":
                    before = present[present.index < step]
                    value = before.iloc[-1] if len(before) else None
                elif fill == "linear":
                    value = between(present, step) if is_numeric else None
                elif fill == "null" or not is_numeric:
                    value = None
                else:
                    value = fill
                rows.setdefault((step, group), {})[name] = value
    return rows


def between(present, step):
    before, after = present[present.index < step], present[present.index > step]
    if before.empty or after.empty:
        return None
    pair = pandas.Series(
        [float(before.iloc[-1]), numpy.nan, float(after.iloc[0])], index=[before.index[-1], step, after.index[0]]
    )
    return pair.interpolate(method="index").iloc[1]
