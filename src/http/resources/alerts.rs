//! `/api/alerts` and `/api/buckets/{bucketId}/alerts`.

use actix_web::http::StatusCode;
use serde_json::Value;

use super::alert_views::RuleView;
use super::evaluation_body::EvaluationBody;
use super::views::{Many, NamedView, One, view};
use crate::catalog::{Rule, RuleForm, RuleSettings, RuleStatus};
use crate::error::ServiceError;
use crate::http::endpoint::{
    Answer, Call, Endpoint, Optional, Reader, Reply, Unread, Writer, delete, get, patch, post,
};
use crate::http::shape::{FromJson, Number, OpenName, Patch, Rule as BodyRule, Text, Trimmed, Url, body};
use crate::ids::ObjectId;
use crate::limits::{ACKNOWLEDGEMENT_CHARS_MAX, CONDITION_CHARS_MAX};
use crate::service::page::PageRequest;
use crate::service::rules::check_may_evaluate;
use crate::service::{Caller, Service};
use crate::timestamp::Timestamp;

/// Default of `cooldownMinutes`.
const DEFAULT_COOLDOWN_MINUTES: f64 = 5.0;

type Condition = Trimmed<CONDITION_CHARS_MAX>;
type Minutes = Number<0, { u64::MAX }>;

view! {
    /// The response to the creation of an alert rule.
    pub struct CreatedRuleAnswer<'a> of(rule: &'a Rule, now_ns: i64) {
        /// Result in words.
        message: &'static str = "alert rule created",
        /// The rule as it is now.
        alert_rule: RuleView<'a> = RuleView::of(rule, now_ns),
        /// Short form, for a rule created with `naturalLanguageQuery`.
        alert?: ShortRuleView<'a> =
            (rule.settings.form == RuleForm::NaturalLanguageQuery).then(|| ShortRuleView::of(rule)),
    }
}

view! {
    /// Short form of an alert rule.
    pub struct ShortRuleView<'a> of(rule: &'a Rule) {
        /// ID of the rule.
        #[serde(rename = "_id")]
        id: ObjectId = rule.id,
        /// Name of the rule.
        name: &'a str = &rule.settings.name,
        /// `active`, `paused` or `inactive`.
        status: RuleStatus = rule.settings.status,
        /// When the rule was created.
        created_at: Timestamp = Timestamp(rule.created_at_ns),
    }
}

view! {
    /// The response to a deletion.
    pub struct DeletedRuleAnswer<'a> of(rule: &'a Rule) {
        /// Result in words.
        message: &'static str = "alert rule deleted",
        /// The deleted rule.
        deleted_alert_rule: NamedView<'a> = NamedView::of(rule.id, &rule.settings.name),
    }
}

body! {
    /// Body of a request that creates an alert rule.
    pub struct RuleBody {
        /// Bucket of the data source.
        bucket_id: ObjectId,
        /// Data source that the rule watches.
        data_source_id: ObjectId,
        /// Name of the rule.
        name: OpenName,
        /// The condition as text; send either this or `naturalLanguageQuery`.
        condition: Option<Condition>,
        /// The condition as text; send either this or `condition`.
        natural_language_query: Option<Condition>,
        /// URL that receives triggers, in addition to the webhooks; required when a rule is created with `condition`.
        webhook_url: Option<Url>,
        /// Stored and returned, but has no effect; 5 when absent.
        cooldown_minutes: Option<Minutes>,
        /// `active` when absent.
        status: Option<RuleStatus>,
        /// How external evaluators evaluate the rule.
        evaluation: Option<EvaluationBody>,
    }
    rules [BodyRule::OneOf("condition", "naturalLanguageQuery"), BodyRule::Needs("condition", "webhookUrl")]
}

body! {
    /// Body of a request that changes an alert rule; absent members keep their values.
    pub struct RulePatchBody {
        /// Name of the rule.
        name: Option<OpenName>,
        /// The condition as text.
        condition: Option<Condition>,
        /// The condition as text; an alias of `condition`.
        natural_language_query: Option<Condition>,
        /// URL that receives triggers, in addition to the webhooks; null removes it.
        #[schema(value_type = Option<Url>)]
        webhook_url: Patch<Url>,
        /// Stored and returned, but has no effect.
        cooldown_minutes: Option<Minutes>,
        /// `active`, `paused` or `inactive`.
        status: Option<RuleStatus>,
        /// The whole evaluation block; null removes it.
        #[schema(value_type = Option<EvaluationBody>)]
        evaluation: Patch<EvaluationBody>,
    }
    rules [BodyRule::NotBoth("condition", "naturalLanguageQuery")]
}

body! {
    /// Body of a request that acknowledges a rule; may be absent.
    pub struct AcknowledgementBody {
        /// What others should know.
        note: Option<Note>,
    }
}

type Note = Text<ACKNOWLEDGEMENT_CHARS_MAX>;

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/buckets/{bucketId}/alerts", "listRules", list),
        post("/api/alerts", "createRule", create).status(StatusCode::CREATED),
        get("/api/alerts/{id}", "showRule", show),
        patch("/api/alerts/{id}", "updateRule", update),
        delete("/api/alerts/{id}", "deleteRule", remove),
        post("/api/alerts/{id}/acknowledge", "acknowledgeRule", acknowledge),
    ]
}

async fn list(call: Call<Reader, (ObjectId, PageRequest)>) -> Reply<Many<RuleView<'static>>> {
    let (bucket_id, page_request) = call.params;
    let page = call.service.list_rules(&call.caller, bucket_id, page_request)?;
    let now_ns = call.service.now_ns();
    Answer::page(page_request, &page, |rule| RuleView::of(rule, now_ns))
}

async fn create(call: Call<Writer, (), Unread<RuleBody>>) -> Reply<CreatedRuleAnswer<'static>> {
    check_evaluation_allowed(&call.body.json, &call.caller)?;
    let body = read_rule(&call.body, &call.service, &call.caller)?;
    let (bucket_id, source_id) = (body.bucket_id, body.data_source_id);
    let settings = body.into_settings()?;
    let rule = call
        .service
        .create_rule(&call.caller, bucket_id, source_id, settings)
        .await?;
    Answer::of(&CreatedRuleAnswer::of(&rule, call.service.now_ns()))
}

async fn show(call: Call<Reader, ObjectId>) -> Reply<One<RuleView<'static>>> {
    let rule = call.service.rule(&call.caller, call.params)?;
    Answer::one(RuleView::of(&rule, call.service.now_ns()))
}

async fn update(call: Call<Writer, ObjectId, Unread<RulePatchBody>>) -> Reply<One<RuleView<'static>>> {
    let rule_id = call.params;
    check_evaluation_allowed(&call.body.json, &call.caller)?;
    let body = call.body.read().map_err(|error| {
        let rule = call.service.rule(&call.caller, rule_id).ok();
        let source = rule.map(|rule| (rule.bucket_id, rule.source_id));
        with_fields(error, &call.service, &call.caller, source)
    })?;
    let url = body.webhook_url.0.clone().flatten();
    let url = url.as_ref().map(|url| &*url.0);
    let rule = call
        .service
        .update_rule(&call.caller, rule_id, url, |known| body.applied_to(known))
        .await?;
    Answer::changed("alert rule updated", RuleView::of(&rule, call.service.now_ns()))
}

async fn acknowledge(
    call: Call<Writer, ObjectId, Optional<AcknowledgementBody>>,
) -> Reply<One<RuleView<'static>>> {
    let note = call.body.0.and_then(|body| body.note);
    let note = note.map(|note| note.0.into());
    let rule = call.service.acknowledge_rule(&call.caller, call.params, note);
    let rule = rule.await?;
    Answer::changed(
        "alert rule acknowledged",
        RuleView::of(&rule, call.service.now_ns()),
    )
}

async fn remove(call: Call<Writer, ObjectId>) -> Reply<DeletedRuleAnswer<'static>> {
    let rule = call.service.delete_rule(&call.caller, call.params).await?;
    Answer::of(&DeletedRuleAnswer::of(&rule))
}

impl RuleBody {
    /// The settings of the new rule, without the parsed condition.
    pub fn into_settings(self) -> Result<RuleSettings, ServiceError> {
        let Some((form, text)) = text_of(self.condition, self.natural_language_query) else {
            return Err(ServiceError::internal("BUG: a rule without a text was read"));
        };
        Ok(RuleSettings {
            name: self.name.0.into(),
            text,
            form,
            parsed: None,
            webhook_url: self.webhook_url.map(|url| url.0.into()),
            cooldown_minutes: self
                .cooldown_minutes
                .map_or(DEFAULT_COOLDOWN_MINUTES, |minutes| minutes.0),
            status: self.status.unwrap_or(RuleStatus::Active),
            evaluation: self.evaluation.map(Into::into),
        })
    }
}

impl RulePatchBody {
    fn applied_to(self, known: &RuleSettings) -> RuleSettings {
        let (form, text) = text_of(self.condition, self.natural_language_query)
            .unwrap_or_else(|| (known.form, known.text.clone()));
        let webhook_url = self.webhook_url.map(|url| url.0.into());
        let evaluation = self.evaluation.map(Into::into);
        RuleSettings {
            name: self.name.map_or_else(|| known.name.clone(), |name| name.0.into()),
            text,
            form,
            parsed: None,
            webhook_url: webhook_url.unwrap_or_else(|| known.webhook_url.clone()),
            cooldown_minutes: self
                .cooldown_minutes
                .map_or(known.cooldown_minutes, |minutes| minutes.0),
            status: self.status.unwrap_or(known.status),
            evaluation: evaluation.unwrap_or_else(|| known.evaluation.clone()),
        }
    }
}

/// Reads the body of a creation, or one with the same members.
pub fn read_rule<T: FromJson>(
    body: &Unread<T>,
    service: &Service,
    caller: &Caller,
) -> Result<T, ServiceError> {
    body.read().map_err(|error| {
        let id = |name: &str| body.json.get(name).and_then(Value::as_str)?.parse().ok();
        let source = id("bucketId").zip(id("dataSourceId"));
        with_fields(error, service, caller, source)
    })
}

/// The condition as text, and the member that it was sent in.
fn text_of(condition: Option<Condition>, query: Option<Condition>) -> Option<(RuleForm, Box<str>)> {
    let condition = condition.map(|text| (RuleForm::Condition, text.0.into()));
    condition.or(query.map(|text| (RuleForm::NaturalLanguageQuery, text.0.into())))
}

/// Rejects a key that may not set an evaluation block before the block is validated.
fn check_evaluation_allowed(body: &Value, caller: &Caller) -> Result<(), ServiceError> {
    match body.get("evaluation") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => check_may_evaluate(caller),
    }
}

/// Adds the available fields to the message of an error in the evaluation block.
fn with_fields(
    mut error: ServiceError,
    service: &Service,
    caller: &Caller,
    source: Option<(ObjectId, ObjectId)>,
) -> ServiceError {
    let at_block = |path: &[String]| path.first().is_some_and(|member| member == "evaluation");
    if error.details.iter().any(|detail| at_block(&detail.path))
        && let Some((bucket_id, source_id)) = source
        && let Some(fields) = service.fields_in_words(caller, bucket_id, source_id)
    {
        error.message = format!("{}; {fields}", error.message);
    }
    error
}
