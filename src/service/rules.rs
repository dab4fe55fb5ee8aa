//! Alert rules and their settings. Evaluation is in `evaluations`.

use std::sync::Arc;

use super::allowance::Countable;
use super::evaluations::standing_of;
use super::page::{Page, PageRequest};
use super::query::{Aggregation, GroupBy};
use super::{Caller, Service, bucket_for, rule_for, source_for};
use crate::alerts::{Decision, condition, transition};
use crate::catalog::{
    Acknowledgement, Catalog, Command, Evaluation, KeyType, NewRule, Parameter, ParsedCondition, Rule,
    RuleForm, RuleRuntime, RuleSettings, RuleState, Schema, Source, text_bytes,
};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;
use crate::limits::FILLED_ROWS_MAX;

/// The member that has a rule's text.
pub const fn text_member(form: RuleForm) -> &'static str {
    match form {
        RuleForm::Condition => "condition",
        RuleForm::NaturalLanguageQuery => "naturalLanguageQuery",
    }
}

/// Checks that the caller may send an evaluation block, or change a rule that has one.
///
/// # Errors
/// 403 for write keys.
pub fn check_may_evaluate(caller: &Caller) -> Result<(), ServiceError> {
    match caller.key_type() {
        None | Some(KeyType::Admin) => Ok(()),
        Some(_) => Err(ServiceError::forbidden(
            "a rule with an evaluation block needs an admin key",
        )),
    }
}

impl Service {
    /// Lists the rules of a bucket.
    pub fn list_rules(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        page: PageRequest,
    ) -> Result<Page<Arc<Rule>>, ServiceError> {
        self.catalog.read(|catalog| {
            bucket_for(catalog, caller, bucket_id)?;
            Ok(page.cut(
                catalog.rule_count(bucket_id),
                catalog.rules_of(bucket_id).cloned(),
            ))
        })
    }

    /// Returns one rule.
    pub fn rule(&self, caller: &Caller, rule_id: ObjectId) -> Result<Arc<Rule>, ServiceError> {
        let (_, rule) = self.catalog.read(|catalog| rule_for(catalog, caller, rule_id))?;
        Ok(rule)
    }

    /// Creates a rule. The settings come without the parsed condition, which needs the source.
    ///
    /// # Errors
    /// 404, 403, also beyond a limit; 400 for a text that cannot be parsed, a URL that must not be called, or inputs
    /// that do not exist.
    pub async fn create_rule(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
        mut settings: RuleSettings,
    ) -> Result<Arc<Rule>, ServiceError> {
        self.find_source(caller, bucket_id, source_id)?;
        let url_fault = self
            .url_fault("webhookUrl", settings.webhook_url.as_deref())
            .await;
        let mut faults = Vec::from_iter(url_fault);
        faults.extend(self.input_faults(bucket_id, source_id, &settings).await?);
        let decision = self.decisions.begin(caller.organization_id).await;
        settings.parsed = self.catalog.read(|catalog| {
            let (_, source) = source_for(catalog, caller, bucket_id, source_id)?;
            checked(catalog, &source, &settings, None, faults)
        })?;
        let text_bytes = text_bytes::of_rule(&settings);
        self.admit_one_more(caller.organization_id, Countable::Rule, text_bytes)?;
        let (id, alerts, auditor) = (self.next_id(), self.alerts.clone(), self.auditor(caller));
        // No check inside the rules' actor: every change of the source waits for this decision.
        let change = move |_: Option<&Arc<Rule>>, now_ns| {
            let rule = NewRule {
                id,
                source_id,
                settings,
                created_at_ns: now_ns,
            };
            Ok((writing(auditor.audited(Command::RuleCreated { rule })), ()))
        };
        let creation = async move { alerts.change(id, change).await };
        let ((), _) = decision.carry_out(creation).await?;
        self.rule(caller, id)
    }

    /// Checks a rule as [`Service::create_rule`] does, without its limits, and creates nothing.
    ///
    /// # Errors
    /// 404, 403; 400 for a text that cannot be parsed, a URL that must not be called, or inputs that do not exist.
    pub async fn check_rule(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
        settings: &RuleSettings,
    ) -> Result<(), ServiceError> {
        self.find_source(caller, bucket_id, source_id)?;
        let url_fault = self
            .url_fault("webhookUrl", settings.webhook_url.as_deref())
            .await;
        let mut faults = Vec::from_iter(url_fault);
        faults.extend(self.input_faults(bucket_id, source_id, settings).await?);
        self.catalog.read(|catalog| {
            let (_, source) = source_for(catalog, caller, bucket_id, source_id)?;
            checked(catalog, &source, settings, None, faults).map(drop)
        })
    }

    /// Changes a rule. `change` makes its new settings from the present ones, without the parsed condition; `url` is a
    /// new `webhookUrl` in them. The state is kept: a firing rule does not fire again, and a running dwell continues.
    ///
    /// # Errors
    /// As [`Service::create_rule`]; 403 for a write key if there is an evaluation block.
    pub async fn update_rule(
        &self,
        caller: &Caller,
        rule_id: ObjectId,
        url: Option<&str>,
        change: impl FnOnce(&RuleSettings) -> RuleSettings,
    ) -> Result<Arc<Rule>, ServiceError> {
        self.changeable_rule(caller, rule_id)?;
        let url_fault = self.url_fault("webhookUrl", url).await;
        let decision = self.decisions.begin(caller.organization_id).await;
        let known = self.changeable_rule(caller, rule_id)?;
        let mut settings = change(&known.settings);
        let before = text_bytes::of_rule(&known.settings);
        let after = text_bytes::of_rule(&settings);
        self.admit_text(caller.organization_id, before, after)?;
        let mut faults = Vec::from_iter(url_fault);
        // What a rule has named before may have lost its points since.
        if settings.evaluation != known.settings.evaluation {
            faults.extend(
                self.input_faults(known.bucket_id, known.source_id, &settings)
                    .await?,
            );
        }
        settings.parsed = self.catalog.read(|catalog| {
            let (_, source) = source_for(catalog, caller, known.bucket_id, known.source_id)?;
            checked(catalog, &source, &settings, Some(&known.settings), faults)
        })?;
        // Verdicts may change the rule's state until the rules' actor has this, but its settings and its source only
        // change after this decision.
        let (alerts, auditor) = (self.alerts.clone(), self.auditor(caller));
        let change = move |rule: Option<&Arc<Rule>>, now_ns| {
            let rule = rule.ok_or_else(|| ServiceError::not_found("alert rule"))?;
            let command = Command::RuleUpdated {
                rule_id,
                runtime: runtime_after(rule, &settings, now_ns),
                settings,
                at_ns: now_ns,
            };
            Ok((writing(auditor.audited(command)), ()))
        };
        let changed = async move { alerts.change(rule_id, change).await };
        let ((), _) = decision.carry_out(changed).await?;
        self.rule(caller, rule_id)
    }

    /// Records that the caller knows that a rule has fired.
    ///
    /// # Errors
    /// 404, 403; 409 for a rule that has not fired.
    pub async fn acknowledge_rule(
        &self,
        caller: &Caller,
        rule_id: ObjectId,
        note: Option<Box<str>>,
    ) -> Result<Arc<Rule>, ServiceError> {
        self.rule(caller, rule_id)?;
        let (by, auditor) = (caller.actor_id(), self.auditor(caller));
        let acknowledge = move |rule: Option<&Arc<Rule>>, now_ns| {
            let rule = rule.ok_or_else(|| ServiceError::not_found("alert rule"))?;
            match standing_of(rule, now_ns).map(|standing| standing.state) {
                Some(RuleState::Firing | RuleState::Clearing) => {}
                Some(RuleState::Armed) => {
                    return Err(ServiceError::conflict(
                        "the rule is armed; only a rule that has fired can be acknowledged",
                    ));
                }
                None => {
                    return Err(ServiceError::conflict(
                        "the rule has no evaluation block, so it does not fire",
                    ));
                }
            }
            let at_ns = now_ns;
            let acknowledgement = Acknowledgement { at_ns, by, note };
            let command = Command::RuleAcknowledged {
                rule_id,
                acknowledgement,
            };
            Ok((writing(auditor.audited(command)), ()))
        };
        self.alerts.change(rule_id, acknowledge).await?;
        self.rule(caller, rule_id)
    }

    /// Deletes a rule. Pending deliveries of its triggers are still sent.
    ///
    /// # Errors
    /// 404, 403; 403 for a write key if there is an evaluation block.
    pub async fn delete_rule(&self, caller: &Caller, rule_id: ObjectId) -> Result<Arc<Rule>, ServiceError> {
        self.changeable_rule(caller, rule_id)?;
        let (caller, auditor) = (*caller, self.auditor(caller));
        let deleted = self.alerts.change(rule_id, move |rule, _| {
            let rule = rule.ok_or_else(|| ServiceError::not_found("alert rule"))?;
            check_may_change(&caller, rule)?;
            let command = auditor.audited(Command::RuleDeleted { rule_id });
            Ok((writing(command), Arc::clone(rule)))
        });
        deleted.await
    }

    /// Describes the fields of a source, for the error of an invalid evaluation block; `None` for a source that the
    /// caller may not see.
    pub fn fields_in_words(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
    ) -> Option<String> {
        let found = self.find_source(caller, bucket_id, source_id).ok();
        found.map(|(_, source)| available(&source.schema))
    }

    fn changeable_rule(&self, caller: &Caller, rule_id: ObjectId) -> Result<Arc<Rule>, ServiceError> {
        let rule = self.rule(caller, rule_id)?;
        check_may_change(caller, &rule)?;
        Ok(rule)
    }
}

/// Checks that the caller may change or delete a rule.
fn check_may_change(caller: &Caller, rule: &Rule) -> Result<(), ServiceError> {
    match rule.settings.evaluation {
        Some(_) => check_may_evaluate(caller),
        None => Ok(()),
    }
}

/// A decision that writes this command and has no deliveries.
fn writing(command: Command) -> Decision {
    Decision {
        command: Some(command),
        deliveries: Vec::new(),
    }
}

/// The rule's state after a change: a dwell that has completed by now stays completed, and a new evaluation block is
/// due immediately.
fn runtime_after(rule: &Rule, settings: &RuleSettings, now_ns: i64) -> RuleRuntime {
    let mut runtime = match &rule.settings.evaluation {
        Some(old) => transition::settled(&rule.runtime, old.dwell_ns(), now_ns),
        None => rule.runtime,
    };
    match (&rule.settings.evaluation, &settings.evaluation) {
        (None, Some(_)) => runtime.due_from_ns = now_ns,
        // Nobody hears of the end of a dwell that nothing evaluates.
        (Some(_), None) if runtime.state == RuleState::Clearing => runtime.state = RuleState::Armed,
        _ => {}
    }
    runtime
}

/// Checks a rule against its source and bucket and reports all faults together, after those that are known. Of a rule that
/// exists, what stays as it was is not refused: a source that it reads may be gone since, or the unit of a field be another.
/// Returns the parsed text.
fn checked(
    catalog: &Catalog,
    source: &Source,
    settings: &RuleSettings,
    before: Option<&RuleSettings>,
    mut faults: Vec<Detail>,
) -> Result<Option<ParsedCondition>, ServiceError> {
    let is_evaluated = |settings: &RuleSettings| settings.evaluation.is_some();
    let before_with_text = before
        .filter(|before| before.text == settings.text && is_evaluated(before) == is_evaluated(settings));
    let parsed = match condition::parse(&settings.text, &source.schema) {
        Ok(parsed) => Some(parsed),
        Err(_) if let Some(before) = before_with_text => before.parsed.clone(),
        // The text does not have to be parsed: the external evaluator interprets it.
        Err(_) if is_evaluated(settings) => None,
        Err(error) => {
            faults.push(Detail::at(&[text_member(settings.form)], error.to_string()));
            None
        }
    };
    let evaluation = settings.evaluation.as_ref();
    let keeps_evaluation = before.is_some_and(|before| before.evaluation.as_ref() == evaluation);
    if let Some(evaluation) = evaluation.filter(|_| !keeps_evaluation) {
        check_inputs(catalog, source, evaluation, &mut faults);
    }
    if faults.is_empty() {
        Ok(parsed)
    } else {
        Err(ServiceError::faults(faults))
    }
}

fn check_inputs(catalog: &Catalog, own: &Source, evaluation: &Evaluation, faults: &mut Vec<Detail>) {
    for (index, input) in evaluation.inputs.iter().enumerate() {
        let mut fault = |member: &str, message: String| {
            faults.push(Detail::at(
                &["evaluation", "inputs", &index.to_string(), member],
                message,
            ));
        };
        let source = match input.source_id {
            None => Some(own),
            Some(id) => catalog
                .source(id)
                .filter(|source| source.bucket_id == own.bucket_id)
                .map(AsRef::as_ref),
        };
        let Some(source) = source else {
            let fields = available(&own.schema);
            let message = format!("is no data source of the rule's bucket; on the rule's own, {fields}");
            fault("dataSourceId", message);
            continue;
        };
        let Some(field) = source
            .schema
            .fields
            .iter()
            .find(|field| *field.name == *input.field)
        else {
            let fields = available(&source.schema);
            fault("field", format!("{:?} is not declared; {fields}", input.field));
            continue;
        };
        if let (Some(fill), Some((_, group_by))) = (&input.fill, &input.grouping)
            && *fill != Parameter::Text("none".into())
            && let Ok(step) = GroupBy::parse(group_by)
            && step.steps_in(evaluation.window_ns(input)) > FILLED_ROWS_MAX as u64
        {
            let message = format!(
                "gives more than {FILLED_ROWS_MAX} rows; choose a longer groupBy or a shorter window"
            );
            fault("fill", message);
        }
        let aggregation = input.grouping.as_ref().map(|(aggregation, _)| aggregation);
        let parsed = aggregation.and_then(|name| Aggregation::parse(name).ok());
        if let Some(aggregation) = parsed.filter(|aggregation| !aggregation.covers(field.kind)) {
            let (name, kind, fields) = (&input.field, field.kind.name(), available(&source.schema));
            let aggregation = aggregation.name();
            let message =
                format!("{aggregation} does not aggregate {name:?}, which is a {kind}; use count; {fields}");
            fault("aggregation", message);
        }
    }
}

fn available(schema: &Schema) -> String {
    let fields = schema.fields.iter();
    let names: Vec<_> = fields
        .map(|field| format!("{} ({})", field.name, field.kind.name()))
        .collect();
    format!("the fields available are {}", names.join(", "))
}
