//! The monthly quota: which calls count, when they are used up, and when the next month begins.
//!
//! Calls are counted where the caller is identified (`access`), under the same catalog lock: one atomic, no lock.

use std::mem::take;

use engine::Unit;

use super::Service;
use super::sliding_window::seconds_until;
use crate::catalog::{CallCounts, Catalog, Command, Key, MonthDay, Plan};
use crate::clock::{DAY_NS, SECOND_NS};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// Maximum organizations per command: about 100 KB of log.
const TOTALS_PER_COMMAND_MAX: usize = 4_096;

/// The quota of an organization on a limited plan, as shown in every answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The plan's calls per month.
    pub calls_max: u64,
    /// Calls left in this month.
    pub remaining: u64,
    /// Start of the next month, in seconds since 1970-01-01 UTC.
    pub resets_at_seconds: i64,
}

/// A call of a known caller, either counted or refused.
#[derive(Default)]
pub struct Call {
    /// `None` on a plan without a limit.
    pub quota: Option<Quota>,
    used_up: Option<Plan>,
}

impl Call {
    /// Whether the month's calls are used up.
    pub fn is_refused(&self) -> bool {
        self.used_up.is_some()
    }

    /// Checks that the month's calls are not used up.
    ///
    /// # Errors
    /// 429 with the time at which the next month begins.
    pub fn check(&self, now_ns: impl FnOnce() -> i64) -> Result<(), ServiceError> {
        let (Some(plan), Some(quota)) = (self.used_up, self.quota) else {
            return Ok(());
        };
        let resets_at_ns = quota.resets_at_seconds * SECOND_NS;
        Err(ServiceError::too_many_requests(
            format!(
                "the {} plan's {} API calls of this month are used up; the next month's begin at {}, \
                 or change the plan",
                plan.name(),
                quota.calls_max,
                Timestamp(resets_at_ns)
            ),
            seconds_until(resets_at_ns, now_ns()),
        ))
    }
}

impl Service {
    /// Counted calls of this month. Refused calls, calls of integration keys and calls by which signed-in users only
    /// look at data do not count.
    pub fn calls_this_month(&self, organization_id: ObjectId) -> u64 {
        let month = month_of(self.now_ns());
        self.catalog.read(|catalog| {
            let found = catalog.organization_with_calls(organization_id);
            found.map_or(0, |(_, calls)| calls.standing(month).calls)
        })
    }

    /// Counts a call. A call that does not count is never refused.
    pub(super) fn count_call(
        &self,
        catalog: &Catalog,
        organization_id: ObjectId,
        is_counted: bool,
        now_ns: i64,
    ) -> Call {
        let Some((organization, calls)) = catalog.organization_with_calls(organization_id) else {
            return Call::default();
        };
        let (month, calls_max) = (month_of(now_ns), organization.plan.limits().calls_max);
        let counted = match is_counted {
            true => calls.count(month, calls_max),
            false => Ok(calls.standing(month)),
        };
        if is_counted && counted.is_ok() {
            self.note_unsaved_calls(organization_id, calls);
        }
        let is_refused = counted.is_err();
        let (Ok(at) | Err(at)) = counted;
        Call {
            quota: calls_max.map(|calls_max| Quota {
                calls_max,
                remaining: calls_max.saturating_sub(at.calls),
                resets_at_seconds: Unit::Month.next_ns(i64::from(at.month) * DAY_NS) / SECOND_NS,
            }),
            used_up: is_refused.then_some(organization.plan),
        }
    }

    /// Counts a call with a key, for lists of keys.
    pub(super) fn count_key_call(&self, key: &Key, now_ns: i64) {
        if key.calls.count(month_of(now_ns)) {
            self.unsaved_key_calls.lock().push(key.id);
        }
    }

    /// Calls with a key in this month.
    pub fn key_calls_this_month(&self, key: &Key) -> u64 {
        key.calls.in_month(month_of(self.now_ns()))
    }

    /// Makes the calls with keys since the last save durable. Call it once a second.
    ///
    /// # Errors
    /// 503 if the log refuses writes; the next save tries again.
    pub async fn save_key_calls(&self) -> Result<(), ServiceError> {
        let keys = take(&mut *self.unsaved_key_calls.lock());
        for (nth, some) in keys.chunks(TOTALS_PER_COMMAND_MAX).enumerate() {
            let totals = self.catalog.read(|catalog| {
                let total = |id: &ObjectId| {
                    let total = catalog.key(*id)?.calls.save();
                    Some((*id, total.month, total.calls))
                };
                some.iter().filter_map(total).collect()
            });
            let saved = self
                .decisions
                .commit_observed(Command::KeyCallsCounted { totals });
            if let Err(error) = saved.await {
                let not_saved = &keys[nth * TOTALS_PER_COMMAND_MAX..];
                self.catalog.read(|catalog| {
                    // Those that were used meanwhile are queued already.
                    let calls_of =
                        |id: &&ObjectId| catalog.key(**id).is_some_and(|key| key.calls.is_first_unsaved());
                    let again = not_saved.iter().filter(calls_of);
                    self.unsaved_key_calls.lock().extend(again);
                });
                return Err(error);
            }
        }
        Ok(())
    }

    fn note_unsaved_calls(&self, organization_id: ObjectId, calls: &CallCounts) {
        if calls.is_first_unsaved() {
            self.unsaved_calls.lock().push(organization_id);
        }
    }

    /// Makes the totals of calls counted since the last save durable. Call it once a second.
    ///
    /// # Errors
    /// 503 if the log refuses writes; the next save tries again.
    pub async fn save_calls(&self) -> Result<(), ServiceError> {
        let organizations = take(&mut *self.unsaved_calls.lock());
        for (nth, some) in organizations.chunks(TOTALS_PER_COMMAND_MAX).enumerate() {
            let mut totals = Vec::with_capacity(some.len());
            self.catalog.read(|catalog| {
                for id in some {
                    let calls = catalog.organization_with_calls(*id).into_iter();
                    let of_one = calls.flat_map(|(_, calls)| calls.save());
                    totals.extend(of_one.map(|total| (*id, total.month, total.calls)));
                }
            });
            if let Err(error) = self
                .decisions
                .commit_observed(Command::CallsCounted { totals })
                .await
            {
                let not_saved = &organizations[nth * TOTALS_PER_COMMAND_MAX..];
                self.catalog.read(|catalog| {
                    for id in not_saved {
                        if let Some((_, calls)) = catalog.organization_with_calls(*id) {
                            // Still or newly unsaved; list it again in both cases.
                            let _ = calls.save();
                            self.note_unsaved_calls(*id, calls);
                        }
                    }
                });
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The calendar month (UTC) of a time.
fn month_of(now_ns: i64) -> MonthDay {
    MonthDay::try_from(Unit::Month.start_ns(now_ns) / DAY_NS).unwrap_or(0)
}
