"""Two kinds of rules of one's own.

    TIDEWATCH_KEY=svc_i_… python -m tidewatch.evaluator evaluator:registry --url http://127.0.0.1:8080

`stuck` is met when an input has not changed within its window. Parameter: `minPoints`, 10 by default.

`imbalance` is met when the means of the inputs `left` and `right` differ by more than `percent` of the greater one.
"""

import statistics

from tidewatch.evaluator import (
    Finding,
    Parameters,
    Registry,
    Series,
    Task,
    Verdict,
    decided,
    inconclusive,
    met,
    not_met,
    undecided,
)

registry = Registry()


@registry.input_kind("stuck")
def stuck(series: Series, parameters: Parameters) -> Finding:
    """One input at a time: the rule's parameter `inputs` says whether any or all have to be stuck."""
    least = parameters.count("minPoints", 10)
    if least is None or len(series.present) < least:
        return undecided(f"{len(series.present)} values in the window, minPoints asks for {least}")
    newest = series.present[-1]
    return decided(all(row.value == newest.value for row in series.present), newest, (newest.value, least, "stuck_at"))


@registry.kind("imbalance")
def imbalance(task: Task) -> Verdict:
    """All inputs of the rule together."""
    percent = task.parameters.positive("percent")
    left, right = task["left"].numbers, task["right"].numbers
    if not left or not right:
        return inconclusive("an input has no numbers in the window")
    means = [statistics.fmean(row.value for row in rows) for rows in (left, right)]
    greater = max(map(abs, means))
    difference = abs(means[0] - means[1]) / greater * 100 if greater else 0.0
    verdict = met if difference > percent else not_met
    return verdict(currentValue=difference, threshold=percent, operator="gt", means=means)
