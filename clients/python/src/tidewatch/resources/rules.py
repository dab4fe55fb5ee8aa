"""Alert rules, their evaluation, and what people add to them: silences and annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidewatch._call import (
    UNSET,
    Answer,
    Call,
    Page,
    Unset,
    changed,
    delete,
    get,
    given,
    member,
    page,
    patch,
    path,
    post,
)
from tidewatch._resource import M, Resource, endpoint, entries
from tidewatch.models.common import Named, Time

if TYPE_CHECKING:
    from tidewatch.models.rules import (
        AcceptedVerdict,
        Annotation,
        Cycle,
        Delivery,
        DueRule,
        Evaluation,
        HistoryEntry,
        Outcome,
        Rule,
        RuleDraft,
        RuleStatus,
        Silence,
        TestedVerdict,
        TimelineEntry,
    )


class Rules(Resource[M]):
    """Alert rules."""

    @endpoint
    def list(self, bucket_id: str, *, limit: int = 100, offset: int = 0) -> Call[Page[Rule]]:
        """`GET /api/buckets/:bucketId/alerts`: a page of rules, oldest first."""
        return get(path("buckets", bucket_id, "alerts"), page("alertRules"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def create(
        self,
        bucket_id: str,
        data_source_id: str,
        name: str,
        *,
        condition: str | None = None,
        natural_language_query: str | None = None,
        webhook_url: str | None = None,
        cooldown_minutes: float | None = None,
        status: RuleStatus | None = None,
        evaluation: Evaluation | None = None,
    ) -> Call[Rule]:
        """`POST /api/alerts`: with `condition` and a `webhook_url`, or with `natural_language_query`."""
        body = given(
            bucket_id=bucket_id,
            data_source_id=data_source_id,
            name=name,
            condition=condition,
            natural_language_query=natural_language_query,
            webhook_url=webhook_url,
            cooldown_minutes=cooldown_minutes,
            status=status,
            evaluation=evaluation,
        )
        return post(path("alerts"), body, member("alertRule"))

    @endpoint
    def get(self, rule_id: str) -> Call[Rule]:
        """`GET /api/alerts/:id`."""
        return get(path("alerts", rule_id), member("alertRule"))

    @endpoint
    def update(
        self,
        rule_id: str,
        *,
        name: str | Unset = UNSET,
        condition: str | Unset = UNSET,
        natural_language_query: str | Unset = UNSET,
        webhook_url: str | Unset | None = UNSET,
        cooldown_minutes: float | Unset = UNSET,
        status: RuleStatus | Unset = UNSET,
        evaluation: Evaluation | Unset | None = UNSET,
    ) -> Call[Rule]:
        """`PATCH /api/alerts/:id`: the evaluation block is replaced as a whole, `None` removes it."""
        body = changed(
            name=name,
            condition=condition,
            natural_language_query=natural_language_query,
            webhook_url=webhook_url,
            cooldown_minutes=cooldown_minutes,
            status=status,
            evaluation=evaluation,
        )
        return patch(path("alerts", rule_id), body, member("alertRule"))

    @endpoint
    def delete(self, rule_id: str) -> Call[Named]:
        """`DELETE /api/alerts/:id`."""
        return delete(path("alerts", rule_id), member("deletedAlertRule"))

    @endpoint
    def acknowledge(self, rule_id: str, *, note: str | None = None) -> Call[Rule]:
        """`POST /api/alerts/:id/acknowledge`: somebody knows that the rule has fired; shown until it is armed again."""
        return post(path("alerts", rule_id, "acknowledge"), given(note=note), member("alertRule"))

    @endpoint
    def history(self, rule_id: str, *, limit: int = 100, offset: int = 0) -> Call[Page[HistoryEntry]]:
        """`GET /api/alerts/:id/history`: a page of verdicts and triggers, newest first, of the last 90 days."""
        return get(path("alerts", rule_id, "history"), page("history"), limit=limit, offset=offset)

    iterate_history = entries(history)

    @endpoint
    def deliveries(self, rule_id: str, *, limit: int = 100, offset: int = 0) -> Call[Page[Delivery]]:
        """`GET /api/alerts/:id/deliveries`: a page of deliveries to the rule's `webhookUrl`, newest first."""
        return get(path("alerts", rule_id, "deliveries"), page("deliveries"), limit=limit, offset=offset)

    iterate_deliveries = entries(deliveries)

    @endpoint
    def backtest(
        self, rule: str | RuleDraft, start_time: Time, end_time: Time, *, limit: int = 100, offset: int = 0
    ) -> Call[Page[Cycle]]:
        """`POST /api/alerts[/:id]/backtest`: when a rule would have been due, with the queries of its inputs.

        `rule` is the id of a rule, or one that is not stored.
        """
        range_ = given(start_time=start_time, end_time=end_time, limit=limit, offset=offset)
        where, draft = _tested(rule)
        return post(path(*where, "backtest"), {**draft, **range_}, page("cycles"), repeatable=True)

    iterate_backtest = entries(backtest)

    @endpoint
    def backtest_verdicts(
        self, rule: str | RuleDraft, verdicts: Sequence[TestedVerdict]
    ) -> Call[Sequence[TimelineEntry]]:
        """`POST /api/alerts[/:id]/backtest/verdicts`: the states and triggers that 1 to 10000 verdicts would cause."""
        where, draft = _tested(rule)
        body = {**draft, "verdicts": [*verdicts]}
        return post(path(*where, "backtest", "verdicts"), body, member("timeline"), repeatable=True)


def _tested(rule: str | RuleDraft) -> tuple[tuple[str, ...], dict[str, object]]:
    return (("alerts", rule), {}) if isinstance(rule, str) else (("alerts",), dict(rule))


class Evaluations(Resource[M]):
    """What evaluators do; integration or admin key. `tidewatch.evaluator` is made of these."""

    @endpoint
    def due(self, *, limit: int | None = None, claim: int | None = None) -> Call[Sequence[DueRule]]:
        """`GET /api/evaluations/due`: the rules that are due, most overdue first.

        With `claim`, 5 to 3600 seconds, other polls leave them out for so long or until their verdicts.
        """
        call: Call[Sequence[DueRule]] = get(path("evaluations", "due"), member("evaluations"), limit=limit, claim=claim)
        return call

    @endpoint
    def verdict(self, rule_id: str, outcome: Outcome, *, evidence: object = None) -> Call[AcceptedVerdict]:
        """`POST /api/evaluations/:ruleId/verdict`: one for each due interval.

        A second one raises a `ConflictError`, whose `body["evaluation"]` has the outcome that is recorded. This may
        be the one that was just sent, if its answer was lost.
        """
        body = given(outcome=outcome, evidence=evidence)
        return post(path("evaluations", rule_id, "verdict"), body, member("evaluation"))


class Silences(Resource[M]):
    """Silences, during which rules make no deliveries."""

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Silence]]:
        """`GET /api/silences`: a page of silences that have not ended, oldest first."""
        return get(path("silences"), page("silences"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def create(
        self, until: Time, reason: str, *, bucket_id: str | None = None, alert_ids: Sequence[str] | None = None
    ) -> Call[Silence]:
        """`POST /api/silences`: for rules, a bucket, or the whole organization."""
        body = given(until=until, reason=reason, bucket_id=bucket_id, alert_ids=alert_ids)
        return post(path("silences"), body, member("silence"))

    @endpoint
    def get(self, silence_id: str) -> Call[Silence]:
        """`GET /api/silences/:id`."""
        return get(path("silences", silence_id), member("silence"))

    @endpoint
    def delete(self, silence_id: str) -> Call[str]:
        """`DELETE /api/silences/:id`: ends it; its id."""
        return delete(path("silences", silence_id), _deleted("deletedSilence"))


class Annotations(Resource[M]):
    """Notes on charts."""

    @endpoint
    def list(
        self,
        *,
        bucket_id: str | None = None,
        data_source_id: str | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Call[Page[Annotation]]:
        """`GET /api/annotations`: a page of those that overlap the range, both ends inclusive, oldest first."""
        return get(
            path("annotations"),
            page("annotations"),
            bucket_id=bucket_id,
            data_source_id=data_source_id,
            start_time=start_time,
            end_time=end_time,
            limit=limit,
            offset=offset,
        )

    iterate = entries(list)

    @endpoint
    def create(
        self, bucket_id: str, at: Time, text: str, *, data_source_id: str | None = None, until: Time | None = None
    ) -> Call[Annotation]:
        """`POST /api/annotations`: of an instant, or with `until` of a range."""
        body = given(bucket_id=bucket_id, at=at, text=text, data_source_id=data_source_id, until=until)
        return post(path("annotations"), body, member("annotation"))

    @endpoint
    def get(self, annotation_id: str) -> Call[Annotation]:
        """`GET /api/annotations/:id`."""
        return get(path("annotations", annotation_id), member("annotation"))

    @endpoint
    def update(
        self,
        annotation_id: str,
        *,
        data_source_id: str | Unset | None = UNSET,
        at: Time | Unset = UNSET,
        until: Time | Unset | None = UNSET,
        text: str | Unset = UNSET,
    ) -> Call[Annotation]:
        """`PATCH /api/annotations/:id`."""
        body = changed(data_source_id=data_source_id, at=at, until=until, text=text)
        return patch(path("annotations", annotation_id), body, member("annotation"))

    @endpoint
    def delete(self, annotation_id: str) -> Call[str]:
        """`DELETE /api/annotations/:id`; its id."""
        return delete(path("annotations", annotation_id), _deleted("deletedAnnotation"))


def _deleted(name: str) -> Reader:
    return lambda answer: str(answer.member(name)["_id"])


if TYPE_CHECKING:
    from collections.abc import Callable

    Reader = Callable[[Answer], str]
