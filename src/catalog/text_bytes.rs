//! Bytes of the texts of catalog objects. Their sum per organization is limited. The count approximates memory, and is
//! the same before an object is created as after.

use super::{
    BoardSettings, ConditionValue, Evaluation, Field, Input, Parameter, RuleSettings, User, WebhookFormat,
    WebhookSettings,
};

/// Bytes that an entry of a list counts besides its texts: a field of a schema, an input or a parameter of a rule, a rule
/// that a silence names, a panel or a variable of a board.
const ENTRY_BYTES: usize = 32;

pub const fn of_key(name: &str) -> usize {
    name.len()
}

pub(super) const fn of_user(user: &User) -> usize {
    user.email.len() + user.name.len()
}

pub fn of_bucket(name: &str, description: Option<&str>) -> usize {
    name.len() + description.map_or(0, str::len)
}

/// Without the schema, which other sources may share.
pub fn of_source(name: &str, kind: &str, description: Option<&str>) -> usize {
    name.len() + kind.len() + description.map_or(0, str::len)
}

pub fn of_schema(fields: &[Field]) -> usize {
    let of_field = |field: &Field| {
        let description = field.description.as_ref().map_or(0, |text| text.len());
        ENTRY_BYTES + field.name.len() + field.unit.as_ref().map_or(0, |text| text.len()) + description
    };
    fields.iter().map(of_field).sum()
}

pub fn of_rule(settings: &RuleSettings) -> usize {
    let parsed = settings.parsed.as_ref().map_or(0, |parsed| {
        let value = match &parsed.value {
            ConditionValue::Text(text) => text.len(),
            ConditionValue::Number(_) | ConditionValue::Boolean(_) | ConditionValue::Range(_) => 0,
        };
        parsed.field.len() + value
    });
    let url = settings.webhook_url.as_ref().map_or(0, |url| url.len());
    let evaluation = settings.evaluation.as_ref().map_or(0, of_evaluation);
    settings.name.len() + settings.text.len() + parsed + url + evaluation
}

fn of_value(parameter: &Parameter) -> usize {
    match parameter {
        Parameter::Text(text) => text.len(),
        Parameter::Number(_) | Parameter::Boolean(_) => 0,
    }
}

fn of_evaluation(evaluation: &Evaluation) -> usize {
    let of_input = |input: &Input| {
        let grouping = input
            .grouping
            .as_ref()
            .map_or(0, |(name, unit)| name.len() + unit.len());
        let timezone = input.timezone.as_ref().map_or(0, |timezone| timezone.len());
        let fill = input.fill.as_ref().map_or(0, of_value);
        let dimensions = input.dimensions.as_ref().map_or(0, |dimensions| dimensions.len());
        let groups: usize = input.group_by_dimensions.iter().map(|name| name.len()).sum();
        let texts = grouping + timezone + fill + dimensions + groups;
        ENTRY_BYTES + input.key.len() + input.field.len() + texts
    };
    let of_parameter = |(name, value): &(Box<str>, Parameter)| ENTRY_BYTES + name.len() + of_value(value);
    let kind = evaluation.kind.as_ref().map_or(0, |kind| kind.len());
    let inputs: usize = evaluation.inputs.iter().map(of_input).sum();
    kind + inputs + evaluation.parameters.iter().map(of_parameter).sum::<usize>()
}

pub const fn of_annotation(text: &str) -> usize {
    text.len()
}

pub fn of_board(settings: &BoardSettings) -> usize {
    let of_text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
    let variables = settings.variables.iter().map(|variable| {
        let values = variable.values.iter().flatten();
        let values: usize = values.map(|value| ENTRY_BYTES + value.len()).sum();
        ENTRY_BYTES + variable.name.len() + of_text(&variable.default) + values
    });
    let panels = settings.panels.iter().map(|panel| {
        let thresholds = panel.thresholds.as_ref().map_or(0, Vec::len);
        let texts = panel.title.len() + panel.query.len() + of_text(&panel.unit);
        ENTRY_BYTES * (1 + thresholds) + texts
    });
    settings.name.len() + of_text(&settings.timezone) + variables.sum::<usize>() + panels.sum::<usize>()
}

/// `subjects`: how many rules or buckets it names.
pub const fn of_silence(reason: &str, subjects: usize) -> usize {
    reason.len() + subjects * ENTRY_BYTES
}

pub fn of_webhook(settings: &WebhookSettings) -> usize {
    let of_format = match &settings.format {
        WebhookFormat::PagerDuty { routing_key } => routing_key.0.len(),
        WebhookFormat::Template { text } => text.len(),
        WebhookFormat::Standard
        | WebhookFormat::Slack
        | WebhookFormat::Teams
        | WebhookFormat::Ntfy
        | WebhookFormat::Email => 0,
    };
    settings.url.len() + settings.secret.0.len() + settings.events.len() + of_format
}
