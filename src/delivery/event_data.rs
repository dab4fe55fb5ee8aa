//! The data of the events that tell of time: `alert.resolved`, `evaluation.*` and `source.*` (contract, chapter 14).

use serde::Serialize;

use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// A rule that had fired is armed again: the data of `alert.resolved`.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolved<'a> {
    pub alert_id: ObjectId,
    pub alert_name: &'a str,
    pub data_source_id: ObjectId,
    pub data_source_name: &'a str,
    /// The condition as text.
    pub condition: &'a str,
    /// When the rule had fired.
    pub triggered_at: Timestamp,
    /// End of the dwell, also when it is told later.
    pub resolved_at: Timestamp,
}

/// No evaluator judges a rule, or one does so again: the data of `evaluation.overdue` and `evaluation.resumed`.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overdue<'a> {
    pub alert_id: ObjectId,
    pub alert_name: &'a str,
    pub data_source_id: ObjectId,
    pub data_source_name: &'a str,
    /// When the evaluation was due that is missing, or was.
    pub due_at: Timestamp,
    /// The last verdict before it.
    pub last_evaluated_at: Option<Timestamp>,
    /// The verdict that came after all; only in `evaluation.resumed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
}

/// A source sends less often than expected, or sends again: the data of `source.stale` and `source.recovered`.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleSource<'a> {
    pub data_source_id: ObjectId,
    pub data_source_name: &'a str,
    /// `None` if no points are expected any more.
    pub expected_interval_seconds: Option<u32>,
    /// The newest point; of a source that has recovered, the point that ended the silence.
    pub last_data_point: Timestamp,
    pub stale_since: Timestamp,
    /// Only in `source.recovered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered_at: Option<Timestamp>,
}
