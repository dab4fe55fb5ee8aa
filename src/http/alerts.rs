//! `/api/alerts` and `/api/buckets/{bucketId}/alerts`.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::alert_views::{RuleBody, RulePatchBody, RuleView};
use super::faults::{Faults, Members};
use super::params::{self, PageParams, Pagination};
use super::{auth, body, evaluation_input, respond, values};
use crate::catalog::{Evaluation, Rule, RuleForm, RuleStatus};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{CONDITION_CHARS_MAX, OPEN_NAME_CHARS_MAX, URL_CHARS_MAX};
use crate::service::rules::{RuleInput, RulePatch, check_may_evaluate, text_member};
use crate::service::{Access, Caller, Service};
use crate::timestamp::Timestamp;

/// `cooldownMinutes` when absent.
const DEFAULT_COOLDOWN_MINUTES: f64 = 5.0;

const WRITERS: Access = Access::ADMIN.or(Access::WRITE);
const READERS: Access = WRITERS.or(Access::READ);

/// A page of rules.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RulesAnswer<'a> {
    /// Oldest first.
    pub alert_rules: Vec<RuleView<'a>>,
    /// Which part.
    pub pagination: Pagination,
}

/// An answer about one rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleAnswer<'a> {
    /// What was done, for changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<&'static str>,
    /// As it is now.
    pub alert_rule: RuleView<'a>,
    /// The short form, for a rule made of a `naturalLanguageQuery`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub alert: Option<ShortRuleView<'a>>,
}

/// A rule in short.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortRuleView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its name.
    pub name: &'a str,
    /// `active`, `paused` or `inactive`.
    #[schema(value_type = RuleStatus)]
    pub status: &'static str,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A deleted rule.
#[derive(Serialize, ToSchema)]
pub struct DeletedRuleView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its name.
    pub name: &'a str,
}

/// An answer to a deletion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedRuleAnswer<'a> {
    /// What was done.
    pub message: &'static str,
    /// What it was.
    pub deleted_alert_rule: DeletedRuleView<'a>,
}

/// Lists a bucket's alert rules.
///
/// Each with its state and timers.
#[utoipa::path(get, path = "/api/buckets/{bucketId}/alerts", operation_id = "listRules", tag = "alert rules",
    security(("apiKey" = ["admin", "write", "read"]), ("bearer" = [])),
    params(
        ("bucketId" = ObjectId, Path, description = "The bucket."),
        PageParams),
    responses(
        (status = 200, body = RulesAnswer, description = "A page of rules.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, READERS)?;
    let mut faults = Faults::default();
    let bucket_id = params::id(&request, "bucketId", &mut faults);
    let asked = params::page(&request, &mut faults);
    let (Some(bucket_id), Some(asked)) = (bucket_id, asked) else {
        return Err(faults.into_error());
    };
    let page = service.list_rules(&caller, bucket_id, asked)?;
    let now_ns = service.now_ns();
    let answer = RulesAnswer {
        alert_rules: page
            .entries
            .iter()
            .map(|rule| RuleView::of(rule, now_ns))
            .collect(),
        pagination: Pagination::of(asked, &page),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Makes an alert rule.
///
/// The text is `condition`, which needs a `webhookUrl`, or `naturalLanguageQuery`: exactly one of them. With an
/// `evaluation` block, external evaluators judge the rule each `intervalSeconds`; such a rule needs an admin key or the
/// bearer token. Without one, the text must be understood (comparisons, ranges, changes, on a field of the source), and
/// nobody judges the rule.
#[utoipa::path(post, path = "/api/alerts", operation_id = "createRule", tag = "alert rules",
    security(("apiKey" = ["admin", "write"]), ("bearer" = [])),
    request_body = RuleBody,
    responses(
        (status = 201, body = RuleAnswer, description = "The new rule."),
        (status = 403, description = "The key is of another bucket, or is not an admin key and the rule has an evaluation block.")))]
pub async fn create(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, WRITERS)?;
    let body = body::read_json(&request, payload).await?;
    check_evaluation_allowed(&body, &caller)?;
    let input = match read_rule(&body) {
        Ok(input) => input,
        Err(error) => {
            let id = |name: &str| body.get(name).and_then(Value::as_str)?.parse().ok();
            let source = id("bucketId").zip(id("dataSourceId"));
            return Err(with_fields(error, &service, &caller, source));
        }
    };
    let is_query = input.text.0 == RuleForm::NaturalLanguageQuery;
    let rule = service.create_rule(&caller, input).await?;
    let answer = RuleAnswer {
        message: Some("alert rule created"),
        alert_rule: RuleView::of(&rule, service.now_ns()),
        alert: is_query.then(|| ShortRuleView::of(&rule)),
    };
    respond::json(&request, StatusCode::CREATED, &answer).await
}

/// Shows an alert rule.
///
/// With its state: `armed` waits, `firing` has fired, `clearing` has been told `not_met` and is armed again after
/// `dwellSeconds`.
#[utoipa::path(get, path = "/api/alerts/{id}", operation_id = "showRule", tag = "alert rules",
    security(("apiKey" = ["admin", "write", "read"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The alert rule.")),
    responses(
        (status = 200, body = RuleAnswer, description = "The rule.")))]
pub async fn show(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, READERS)?;
    let rule = service.rule(&caller, params::only_id(&request)?)?;
    let answer = RuleAnswer {
        message: None,
        alert_rule: RuleView::of(&rule, service.now_ns()),
        alert: None,
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Changes an alert rule.
///
/// What is left out stays. State and timers are kept, so a firing rule does not fire again. An evaluation block is
/// replaced as a whole; null removes it.
#[utoipa::path(patch, path = "/api/alerts/{id}", operation_id = "updateRule", tag = "alert rules",
    security(("apiKey" = ["admin", "write"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The alert rule.")),
    request_body = RulePatchBody,
    responses(
        (status = 200, body = RuleAnswer, description = "As it is now."),
        (status = 403, description = "The key is of another bucket, or is not an admin key and the rule has or would get an evaluation block.")))]
pub async fn update(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, WRITERS)?;
    let body = body::read_json(&request, payload).await?;
    check_evaluation_allowed(&body, &caller)?;
    let mut faults = Faults::default();
    let rule_id = params::id(&request, "id", &mut faults);
    let patch = read_patch(&body, &mut faults);
    let Some(rule_id) = rule_id.filter(|_| faults.none()) else {
        let rule = rule_id.and_then(|id| service.rule(&caller, id).ok());
        let source = rule.map(|rule| (rule.bucket_id, rule.source_id));
        return Err(with_fields(faults.into_error(), &service, &caller, source));
    };
    let rule = service.update_rule(&caller, rule_id, patch).await?;
    let answer = RuleAnswer {
        message: Some("alert rule updated"),
        alert_rule: RuleView::of(&rule, service.now_ns()),
        alert: None,
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Deletes an alert rule with its history.
///
/// A trigger that it owes to its `webhookUrl` is sent all the same.
#[utoipa::path(delete, path = "/api/alerts/{id}", operation_id = "deleteRule", tag = "alert rules",
    security(("apiKey" = ["admin", "write"]), ("bearer" = [])),
    params(("id" = ObjectId, Path, description = "The alert rule.")),
    responses(
        (status = 200, body = DeletedRuleAnswer, description = "Deleted."),
        (status = 403, description = "The key is of another bucket, or is not an admin key and the rule has an evaluation block.")))]
pub async fn remove(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, WRITERS)?;
    let rule = service.delete_rule(&caller, params::only_id(&request)?).await?;
    let answer = DeletedRuleAnswer {
        message: "alert rule deleted",
        deleted_alert_rule: DeletedRuleView {
            id: rule.id,
            name: &rule.settings.name,
        },
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// A key that may not set an evaluation block is told so before the block is read.
fn check_evaluation_allowed(body: &Value, caller: &Caller) -> Result<(), ServiceError> {
    match body.get("evaluation") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => check_may_evaluate(caller),
    }
}

/// Where the evaluation block is at fault, the error names the fields that there are.
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

fn read_rule(body: &Value) -> Result<RuleInput, ServiceError> {
    let mut faults = Faults::default();
    let members = Members::of_body(body, &mut faults);
    let bucket_id = members.required("bucketId", &mut faults, values::id);
    let source_id = members.required("dataSourceId", &mut faults, values::id);
    let name = members.required("name", &mut faults, |v| values::name(v, OPEN_NAME_CHARS_MAX));
    let patch = read_patch_members(&members, &mut faults);
    let has = |name: &str| members.given(name).is_some();
    if body.is_object() && !has("condition") && !has("naturalLanguageQuery") {
        faults.add(
            &["condition"],
            "is required, or naturalLanguageQuery in its place",
        );
    }
    if has("condition") && !has("webhookUrl") {
        faults.add(&["webhookUrl"], "is required with condition");
    }
    let (Some(bucket_id), Some(source_id), Some(name), Some(text), true) =
        (bucket_id, source_id, name, patch.text, faults.none())
    else {
        return Err(faults.into_error());
    };
    Ok(RuleInput {
        bucket_id,
        source_id,
        name,
        text,
        webhook_url: patch.webhook_url.flatten(),
        cooldown_minutes: patch.cooldown_minutes.unwrap_or(DEFAULT_COOLDOWN_MINUTES),
        status: patch.status.unwrap_or(RuleStatus::Active),
        evaluation: patch.evaluation.flatten(),
    })
}

fn read_patch(body: &Value, faults: &mut Faults) -> RulePatch {
    let members = Members::of_body(body, faults);
    RulePatch {
        name: members.optional("name", faults, |v| values::name(v, OPEN_NAME_CHARS_MAX)),
        ..read_patch_members(&members, faults)
    }
}

/// The members that creation and change read alike: all but the name.
fn read_patch_members(members: &Members<'_>, faults: &mut Faults) -> RulePatch {
    let statuses = RuleStatus::ALL.map(|status| (status.name(), status));
    RulePatch {
        name: None,
        text: read_text(members, faults),
        webhook_url: members.nullable("webhookUrl", faults, |v| values::name(v, URL_CHARS_MAX)),
        cooldown_minutes: members.optional("cooldownMinutes", faults, |v| values::number(v, 0.0, f64::MAX)),
        status: members.optional("status", faults, |v| values::one_of(v, &statuses)),
        evaluation: read_evaluation(members, faults),
    }
}

/// Exactly one of the two names; null is as good as absent.
fn read_text(members: &Members<'_>, faults: &mut Faults) -> Option<(RuleForm, String)> {
    let mut read = |form: RuleForm| {
        let name = text_member(form);
        let text = members.nullable(name, faults, |v| values::name(v, CONDITION_CHARS_MAX));
        text.flatten().map(|text| (form, text))
    };
    let condition = read(RuleForm::Condition);
    let query = read(RuleForm::NaturalLanguageQuery);
    if condition.is_some() && query.is_some() {
        faults.add(
            &["naturalLanguageQuery"],
            "is another name for condition; send one of them",
        );
    }
    condition.or(query)
}

fn read_evaluation(members: &Members<'_>, faults: &mut Faults) -> Option<Option<Evaluation>> {
    match members.get("evaluation")? {
        Value::Null => Some(None),
        block => evaluation_input::read(block, members.path_of("evaluation"), faults).map(Some),
    }
}

impl<'a> ShortRuleView<'a> {
    fn of(rule: &'a Rule) -> Self {
        Self {
            id: rule.id,
            name: &rule.settings.name,
            status: rule.settings.status.name(),
            created_at: Timestamp(rule.created_at_ns),
        }
    }
}
