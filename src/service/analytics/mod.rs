//! Analytics of a bucket and of an organization, from rollups, row counts and counters: what they cost grows with
//! sources, hours and rules, not with points or verdicts.
//!
//! Both are worked out on the query pool, from snapshots of one moment each. A period ends now; points count by their
//! timestamps, and what has expired by now counts nowhere. A rule's triggers go with the rule.

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

/// What a bucket's analytics look back on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its name in the API.
    pub name: &'static str,
    /// Its length.
    pub days: i64,
}

impl Period {
    /// The last day: what the overview looks back on.
    pub const DAY: Self = Self { name: "24h", days: 1 };
    /// What is meant where nothing is said.
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

/// A rule that has fired within a period, and where its triggers are counted.
struct Fired {
    rule: Arc<Rule>,
    triggers: View,
}

impl Fired {
    /// The rules of a bucket that have fired since that moment: of the others there is nothing to count.
    fn of_bucket(catalog: &Catalog, ledger: &Ledger, bucket_id: ObjectId, since_ns: i64) -> Vec<Self> {
        let fired = |rule: &&Arc<Rule>| {
            let last_ns = rule.runtime.last_triggered_at_ns;
            last_ns.is_some_and(|last_ns| last_ns >= since_ns)
        };
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
