//! Rules for tests.

use std::sync::Arc;

use crate::catalog::{Evaluation, Rule, RuleForm, RuleRuntime, RuleSettings, RuleStatus};
use crate::ids::ObjectId;

/// An active rule with this interval and dwell, in seconds.
pub fn rule(interval_seconds: f64, dwell_seconds: f64, runtime: RuleRuntime) -> Rule {
    let evaluation = Evaluation {
        kind: None,
        interval_seconds,
        window_seconds: 60.0,
        inputs: Vec::new(),
        parameters: Vec::new(),
        dwell_seconds,
    };
    let settings = RuleSettings {
        name: "high".into(),
        text: "level is above 3".into(),
        form: RuleForm::NaturalLanguageQuery,
        parsed: None,
        webhook_url: None,
        cooldown_minutes: 5.0,
        status: RuleStatus::Active,
        evaluation: Some(evaluation),
    };
    let id = ObjectId::from_bytes([1; 12]);
    Rule {
        id,
        ordinal: 1,
        bucket_id: id,
        source_id: id,
        settings: Arc::new(settings),
        runtime,
        created_at_ns: 0,
        updated_at_ns: 0,
        acknowledgement: None,
        overdue_told_ns: None,
    }
}
