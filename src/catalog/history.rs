//! What happened to a rule: an entry of the ledger for each verdict and each trigger.

use serde::{Deserialize, Serialize};

use super::rule::{Outcome, RuleState};
use crate::ids::ObjectId;

/// One verdict, or the trigger it caused. Id and moment are the entry's key in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Which of the two.
    pub kind: HistoryKind,
    /// What the evaluator found.
    pub outcome: Outcome,
    /// Before.
    pub previous_state: RuleState,
    /// After.
    pub state: RuleState,
    /// JSON, as the evaluator sent it.
    pub evidence: Option<Box<str>>,
    /// The key, or the user, that sent the verdict.
    pub key_id: ObjectId,
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryKind {
    /// A verdict was accepted.
    Verdict,
    /// It fired the rule.
    Trigger,
}

impl HistoryEntry {
    /// The record as the ledger keeps it: MessagePack with named members.
    ///
    /// # Errors
    /// Never for owned data; the encoder's type says so all the same.
    pub fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// Reads a record of the ledger.
    ///
    /// # Errors
    /// Bytes that are no entry, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}
