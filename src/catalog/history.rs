//! The history of a rule: an entry of the ledger for each verdict and each trigger.

use serde::{Deserialize, Serialize};

use super::rule::{Outcome, RuleState};
use crate::ids::ObjectId;

/// A verdict, or the trigger that it caused. Id and time are in the entry's key in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub kind: HistoryKind,
    pub outcome: Outcome,
    /// The rule's state before.
    pub previous_state: RuleState,
    /// The rule's state after.
    pub state: RuleState,
    /// JSON, as the evaluator sent it.
    pub evidence: Option<Box<str>>,
    /// The key or the user that sent the verdict.
    pub key_id: ObjectId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryKind {
    /// A verdict was accepted.
    Verdict,
    /// The verdict fired the rule.
    Trigger,
}

impl HistoryEntry {
    /// Decodes a record of the ledger.
    ///
    /// # Errors
    /// The bytes are not an entry, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}
