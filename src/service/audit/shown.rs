//! Objects as the audit compares and shows them: the settings under their names in the API, without secrets.
//!
//! Each function takes its object apart by all of its members, so that a new member is not forgotten here.

use serde_json::{Map, Value, json};

use crate::catalog::{
    Annotation, AnnotationSettings, BoardRange, BoardSettings, Dimensions, Evaluation, Field, Input,
    Invitation, Key, Panel, Parameter, RetryConfig, RuleSettings, Silence, Source, SourceSettings, Threshold,
    User, Variable, WebhookFormat, WebhookSettings, json_number,
};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// Settings by their names in the API.
pub type Shown = Map<String, Value>;

macro_rules! shown {
    ($($members:tt)*) => {
        match json!({$($members)*}) {
            Value::Object(members) => members,
            // Not reached: the macro makes an object.
            _ => Map::new(),
        }
    };
}

pub fn organization(name: &str, plan: &str) -> Shown {
    shown! { "name": name, "plan": plan }
}

pub fn member(user: &User) -> Shown {
    shown! { "email": user.email, "name": user.name, "role": user.role.name() }
}

pub fn invitation(invitation: &Invitation) -> Shown {
    shown! {
        "email": invitation.email,
        "role": invitation.role.name(),
        "expiresAt": Timestamp(invitation.expires_at_ns),
    }
}

pub fn key(key: &Key) -> Shown {
    shown! {
        "name": key.name,
        "type": key.kind.name(),
        "bucketId": key.bucket_id,
        "expiresAt": key.expires_at_ns.map(Timestamp),
    }
}

pub fn bucket(name: &str, description: Option<&str>, retention_days: u32) -> Shown {
    shown! { "name": name, "description": description, "retentionDays": retention_days }
}

/// A source with these settings, whose fields are those of the schema.
pub fn source(bucket_id: ObjectId, settings: &SourceSettings) -> Shown {
    let SourceSettings {
        name,
        kind,
        description,
        fields,
        schema_mode,
        downsampling,
        status,
        dimensions,
        duplicates,
        expected_interval_seconds,
    } = settings;
    shown! {
        "bucketId": bucket_id,
        "name": name,
        "type": kind,
        "description": description,
        "schema": fields.iter().map(field).collect::<Shown>(),
        "schemaMode": schema_mode.name(),
        "downsampling": downsampling,
        "status": status.name(),
        "dimensions": dimensions.as_deref().map(|dimensions| match dimensions {
            Dimensions::All => json!("all"),
            Dimensions::Named(names) => json!(names),
        }),
        "duplicates": duplicates.name(),
        "expectedIntervalSeconds": expected_interval_seconds,
    }
}

/// The settings of a source that exists.
pub fn settings_of(source: &Source) -> SourceSettings {
    SourceSettings {
        name: source.name.clone(),
        kind: source.kind.clone(),
        description: source.description.clone(),
        fields: source.schema.fields.clone(),
        schema_mode: source.schema_mode,
        downsampling: source.downsampling,
        status: source.status,
        dimensions: source.dimensions.clone(),
        duplicates: source.duplicates,
        expected_interval_seconds: source.expected_interval_seconds,
    }
}

fn field(field: &Field) -> (String, Value) {
    let Field {
        name,
        kind,
        unit,
        description,
    } = field;
    let shown = json!({"type": kind.name(), "unit": unit, "description": description});
    (name.to_string(), shown)
}

pub fn rule(bucket_id: ObjectId, source_id: ObjectId, settings: &RuleSettings) -> Shown {
    let RuleSettings {
        name,
        text,
        // Both follow from the text and the source.
        form: _,
        parsed: _,
        webhook_url,
        cooldown_minutes,
        status,
        evaluation,
    } = settings;
    shown! {
        "bucketId": bucket_id,
        "dataSourceId": source_id,
        "name": name,
        "condition": text,
        "webhookUrl": webhook_url,
        "cooldownMinutes": json_number(*cooldown_minutes),
        "status": status.name(),
        "evaluation": evaluation.as_ref().map(evaluation_block),
    }
}

fn evaluation_block(evaluation: &Evaluation) -> Value {
    let Evaluation {
        kind,
        interval_seconds,
        window_seconds,
        inputs,
        parameters: _,
        dwell_seconds,
    } = evaluation;
    json!({
        "kind": kind,
        "intervalSeconds": json_number(*interval_seconds),
        "windowSeconds": json_number(*window_seconds),
        "inputs": inputs.iter().map(input).collect::<Vec<_>>(),
        "parameters": evaluation.parameters_to_json(),
        "dwellSeconds": json_number(*dwell_seconds),
    })
}

fn input(input: &Input) -> Value {
    let Input {
        key,
        field,
        source_id,
        grouping,
        window_seconds,
        fill,
        timezone,
        dimensions: _,
        group_by_dimensions,
    } = input;
    json!({
        "key": key,
        "field": field,
        "dataSourceId": source_id,
        "aggregation": grouping.as_ref().map(|(aggregation, _)| aggregation),
        "groupBy": grouping.as_ref().map(|(_, unit)| unit),
        "windowSeconds": window_seconds.map(json_number),
        "fill": fill.as_ref().map(Parameter::to_json),
        "timezone": timezone,
        "dimensions": input.dimensions_to_json(),
        "groupByDimensions": group_by_dimensions,
    })
}

/// A webhook without its secrets.
pub fn webhook(settings: &WebhookSettings) -> Shown {
    let WebhookSettings {
        url,
        events,
        bucket_id,
        secret: _,
        retry: RetryConfig {
            max_retries,
            backoff_multiplier,
        },
        status,
        format,
    } = settings;
    let template = match format {
        WebhookFormat::Template { text } => Some(text),
        _ => None,
    };
    shown! {
        "url": url,
        "events": events.iter().map(|event| event.name()).collect::<Vec<_>>(),
        "bucketId": bucket_id,
        "retryConfig": {
            "maxRetries": max_retries,
            "backoffMultiplier": json_number(*backoff_multiplier),
        },
        "status": status.name(),
        "format": format.name().name(),
        "template": template,
    }
}

pub fn mute(silence: &Silence) -> Shown {
    shown! {
        "bucketId": silence.bucket_id,
        "alertIds": silence.alert_ids,
        "until": Timestamp(silence.until_ns),
        "reason": silence.reason,
    }
}

pub fn annotation(annotation: &Annotation, settings: &AnnotationSettings) -> Shown {
    let AnnotationSettings {
        source_id,
        at_ns,
        until_ns,
        text,
    } = settings;
    shown! {
        "bucketId": annotation.bucket_id,
        "dataSourceId": source_id,
        "at": Timestamp(*at_ns),
        "until": until_ns.map(Timestamp),
        "text": text,
    }
}

pub fn board(settings: &BoardSettings) -> Shown {
    let BoardSettings {
        name,
        range,
        timezone,
        refresh_seconds,
        variables,
        panels,
    } = settings;
    let range = match range {
        BoardRange::Last(length) => json!(length),
        BoardRange::Between { start_ns, end_ns } => {
            json!({"startTime": Timestamp(*start_ns), "endTime": Timestamp(*end_ns)})
        }
    };
    shown! {
        "name": name,
        "range": range,
        "timezone": timezone,
        "refreshSeconds": refresh_seconds,
        "variables": variables.iter().map(variable).collect::<Vec<_>>(),
        "panels": panels.iter().map(panel).collect::<Vec<_>>(),
    }
}

fn variable(variable: &Variable) -> Value {
    let Variable {
        name,
        default,
        values,
    } = variable;
    json!({"name": name, "default": default, "values": values})
}

fn panel(panel: &Panel) -> Value {
    let Panel {
        title,
        kind,
        query,
        unit,
        decimals,
        thresholds,
        x,
        y,
        w,
        h,
    } = panel;
    let thresholds = thresholds
        .as_ref()
        .map(|list| list.iter().map(threshold).collect::<Vec<_>>());
    json!({
        "title": title,
        "kind": kind.name(),
        "query": serde_json::from_str::<Value>(query).unwrap_or_default(),
        "unit": unit,
        "decimals": decimals,
        "thresholds": thresholds,
        "x": x, "y": y, "w": w, "h": h,
    })
}

fn threshold(threshold: &Threshold) -> Value {
    json!({"value": json_number(threshold.value), "level": threshold.level.name()})
}

/// The value, or its JSON cut to this many bytes, as text that ends in an ellipsis.
pub fn cut(value: Value, bytes_max: usize) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return value,
    };
    if text.len() <= bytes_max {
        return value;
    }
    let end = text.floor_char_boundary(bytes_max);
    Value::String(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(cut(json!("äöü"), 6), json!("äöü"));
        assert_eq!(cut(json!("äöü"), 5), json!("äö…"));
        assert_eq!(cut(json!([1, 2, 3]), 4), json!("[1,2…"));
        assert_eq!(cut(json!([1, 2, 3]), 7), json!([1, 2, 3]));
        assert_eq!(cut(json!(123_456), 2), json!(123_456));
        assert_eq!(cut(Value::Null, 0), Value::Null);
    }
}
