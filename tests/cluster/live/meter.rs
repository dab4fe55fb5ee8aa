//! What the load has seen lately, and whether it was right.

use std::collections::VecDeque;
use std::time::Duration;

use crate::checker::{Fault, Kind, check};
use crate::load::{Call, Load};
use crate::record::{History, Outcome, Read, Write};
use crate::tenant::Tenant;

/// What `lately` means, in microseconds.
pub const WINDOW: u64 = 10_000_000;
/// The writes of which a read may know have ended after this time, with all their attempts.
const KNOWN_AFTER: u64 = 30_000_000;
/// Time between two comparisons.
const CHECK_PERIOD: u64 = 5_000_000;

/// Figures of the load; times are on its clock.
#[derive(Default)]
pub struct Meter {
    tenants: Vec<Progress>,
    /// Those of the window.
    calls: VecDeque<Call>,
    /// When points were acknowledged, and how many: of the window.
    acknowledgements: VecDeque<(u64, u64)>,
    acknowledged: u64,
    points: u64,
    /// The longest time without an acknowledged write of one organization since the last fault.
    pause: u64,
    /// The last fault.
    since: u64,
    checked_at: u64,
    updated_at: u64,
    /// Reads that were compared, and the points that they showed.
    pub compared: (u64, u64),
    /// What was wrong with them.
    pub faults: Vec<Fault>,
}

#[derive(Clone, Default)]
struct Progress {
    /// Writes that were counted.
    writes: usize,
    /// When the last one that was acknowledged ended.
    last: u64,
}

/// What the window shows.
pub struct Lately {
    pub points_a_second: u64,
    pub refused: usize,
    pub unanswered: usize,
    pub slowest: Duration,
}

impl Meter {
    pub fn new(load: &Load) -> Self {
        let start = Progress {
            writes: 0,
            last: load.now(),
        };
        Meter {
            tenants: vec![start; load.tenants.len()],
            ..Meter::default()
        }
    }

    /// Counts what clients were answered since the last time.
    pub fn update(&mut self, load: &Load) {
        let now = load.now();
        self.updated_at = now;
        for (tenant, progress) in load.tenants.iter().zip(&mut self.tenants) {
            let writes = tenant.writes.lock().unwrap();
            for write in &writes[progress.writes..] {
                if write.outcome == Outcome::Acknowledged {
                    let (count, ended) = (write.numbers.end - write.numbers.start, write.span.ended);
                    self.acknowledgements.push_back((ended, count));
                    self.points += count;
                    self.acknowledged += 1;
                    let began = progress.last.max(self.since);
                    self.pause = self.pause.max(ended.saturating_sub(began));
                    progress.last = progress.last.max(ended);
                }
            }
            progress.writes = writes.len();
            let began = progress.last.max(self.since);
            self.pause = self.pause.max(now.saturating_sub(began));
        }
        self.calls
            .extend(std::mem::take(&mut *load.calls.lock().unwrap()));
        let is_old = |ended: u64| ended + WINDOW < now;
        self.calls.retain(|call| !is_old(call.span.ended));
        self.acknowledgements.retain(|(ended, _)| !is_old(*ended));
        if now > self.checked_at + CHECK_PERIOD {
            self.checked_at = now;
            self.check_reads(load, now.saturating_sub(KNOWN_AFTER));
        }
    }

    /// Measures the pause from now on.
    pub fn begin_fault(&mut self, now: u64) {
        (self.since, self.pause) = (now, 0);
    }

    pub fn pause(&self) -> Duration {
        Duration::from_micros(self.pause)
    }

    /// Writes that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Their points.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// What was found so far.
    pub fn summary(&self) -> String {
        summary(&self.faults)
    }

    pub fn lately(&self) -> Lately {
        let points: u64 = self.acknowledgements.iter().map(|(_, count)| count).sum();
        let count = |wanted: fn(&Call) -> bool| self.calls.iter().filter(|call| wanted(call)).count();
        let slowest = self.calls.iter().map(|call| call.span.ended - call.span.began);
        Lately {
            points_a_second: points * 1_000_000 / self.updated_at.clamp(1, WINDOW),
            refused: count(|call| call.status.is_some_and(|status| status >= 500)),
            unanswered: count(|call| call.status.is_none()),
            slowest: Duration::from_micros(slowest.max().unwrap_or(0)),
        }
    }

    /// Compares the reads that ended before this time with the writes of their points, and drops them: they are most of what
    /// a load records.
    pub fn check_reads(&mut self, load: &Load, before: u64) {
        for tenant in &load.tenants {
            let history = ended_before(tenant, before);
            let rows: usize = history.reads.iter().map(|read| read.rows.len()).sum();
            self.compared.0 += history.reads.len() as u64;
            self.compared.1 += rows as u64;
            self.faults.extend(check(&history));
        }
    }
}

/// Faults by what people ask for.
pub fn summary(faults: &[Fault]) -> String {
    let named = [Kind::Lost, Kind::Doubled, Kind::Stale];
    let [lost, doubled, stale] = named.map(|kind| faults.iter().filter(|fault| fault.kind == kind).count());
    let others = faults.len() - lost - doubled - stale;
    format!("{lost} lost, {doubled} doubled, {stale} stale, {others} other faults")
}

/// The reads that ended before this time, which the tenant loses, and the writes that they may show.
fn ended_before(tenant: &Tenant, before: u64) -> History {
    let reads: Vec<Read> = {
        let mut reads = tenant.reads.lock().unwrap();
        let is_early = |read: &Read| read.span.ended < before;
        let (early, later) = reads.drain(..).partition(is_early);
        *reads = later;
        early
    };
    let first = reads.iter().map(|read| read.numbers.start).min();
    let is_read = |write: &&Write| first.is_some_and(|first| write.numbers.end > first);
    let writes = tenant.writes.lock().unwrap();
    History {
        writes: writes.iter().filter(is_read).cloned().collect(),
        reads,
        ..History::default()
    }
}
