//! Organizations and their plans.

use serde::{Deserialize, Serialize};

use super::{Invitation, names};
use crate::ids::ObjectId;

/// The owner of buckets, keys and users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Organization {
    pub id: ObjectId,
    /// Display name; not unique.
    pub name: Box<str>,
    pub plan: Plan,
    /// Open invitations, oldest first. Some may have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invitations: Vec<Invitation>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
}

/// The plans of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Plan {
    /// The plan of new organizations.
    Free,
    /// Paid.
    Pro,
    /// Without limits.
    Enterprise,
}

/// What a plan allows; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    pub buckets_max: Option<u32>,
    /// `retentionDays` of a bucket.
    pub retention_days_max: Option<u32>,
    /// Calls per calendar month.
    pub calls_max: Option<u64>,
}

// Cheapest first.
names!(Plan: Free => "Free", Pro => "Pro", Enterprise => "Enterprise");

impl Plan {
    /// The limits of the plan (contract, chapter 2).
    pub const fn limits(self) -> PlanLimits {
        match self {
            Self::Free => PlanLimits {
                buckets_max: Some(3),
                retention_days_max: Some(30),
                calls_max: Some(10_000),
            },
            Self::Pro => PlanLimits {
                buckets_max: Some(25),
                retention_days_max: Some(365),
                calls_max: Some(1_000_000),
            },
            Self::Enterprise => PlanLimits {
                buckets_max: None,
                retention_days_max: None,
                calls_max: None,
            },
        }
    }
}
