//! Analytics of a bucket and of an organization, computed from rollups, row counts and counters. The cost depends on
//! the number of sources, hours and rules, not of points or verdicts.
//!
//! Both run on the query pool, on snapshots taken at one time. A period ends now. Points count by their timestamps;
//! expired points do not count. The triggers of a rule are deleted with the rule.

mod bucket;
mod overview;

use std::sync::Arc;

use crate::catalog::{Catalog, Rule, Stream};
use crate::clock::DAY_NS;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ledger::{Ledger, View};

pub use bucket::{BucketAnalytics, SourceAnalytics};
pub use overview::Overview;

/// The period that analytics cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Name in the API.
    pub name: &'static str,
    /// Length in days.
    pub days: i64,
}

impl Period {
    /// The last day, which the overview covers.
    pub const DAY: Self = Self { name: "24h", days: 1 };
    /// The period if the request has none.
    pub const DEFAULT: Self = Self { name: "7d", days: 7 };
    /// All periods.
    pub const ALL: [Self; 4] = [
        Self::DAY,
        Self::DEFAULT,
        Self {
            name: "30d",
            days: 30,
        },
        Self {
            name: "90d",
            days: 90,
        },
    ];

    fn start_ns(self, now_ns: i64) -> i64 {
        now_ns.saturating_sub(self.days * DAY_NS)
    }
}

/// A rule that fired within a period, with a view of its triggers.
struct Fired {
    rule: Arc<Rule>,
    triggers: View,
}

impl Fired {
    /// The rules of a bucket that fired since `since_ns`. The others have no triggers to count.
    fn of_bucket(catalog: &Catalog, ledger: &Ledger, bucket_id: ObjectId, since_ns: i64) -> Vec<Self> {
        let fired = |rule: &&Arc<Rule>| rule.runtime.last_triggered_at_ns >= Some(since_ns);
        let with_triggers = |rule: &Arc<Rule>| Self {
            rule: Arc::clone(rule),
            triggers: ledger.view(catalog, Stream::Triggers, rule.id),
        };
        let rules = catalog.rules_of(bucket_id).filter(fired);
        rules.map(with_triggers).collect()
    }

    fn count(&self, since_ns: i64) -> Result<u64, ServiceError> {
        self.triggers.count(since_ns).map_err(ServiceError::internal)
    }
}
