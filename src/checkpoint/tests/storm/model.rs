//! The model of the rooms: plain lists and the rules of the contract, independent of the code under test.

use std::collections::VecDeque;

use crate::bucket::Digest;
use crate::clock::{DAY_NS, MINUTE_NS};
use crate::ids::ObjectId;

/// 1678-01-01, before which there are no points.
const EARLIEST_NS: i128 = -9_214_560_000_000_000_000;

/// A point. Its value is unique in a round, so that it identifies the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) source: u32,
    pub(super) timestamp_ns: i64,
    pub(super) value: u32,
    /// Whether it had expired when the retention changed, and so stays hidden.
    pub(super) expired_for_good: bool,
    /// Whether it had expired at two checkpoints an hour apart: if the clock is set back, it may be visible again or
    /// not.
    pub(super) may_be_gone: bool,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Acknowledged; the sequence of its first row.
    Stored(u64),
    /// Refused: no row is visible before a restart.
    Refused,
    /// Refused before a restart: all rows or none are present.
    Unknown,
    /// Refused before a restart, and not present.
    Absent,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) rows: Vec<Row>,
    pub(super) key: Option<Digest>,
    pub(super) at_ns: i64,
    pub(super) sent: Sent,
    /// Whether a day had passed at two checkpoints an hour apart: if the clock is set back, its key may be valid again
    /// or not.
    pub(super) may_be_forgotten: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) id: ObjectId,
    pub(super) ordinal: Option<u32>,
    pub(super) exists: bool,
}

/// The condition of a bucket since the last start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Healthy,
    /// Its files cannot be written: it is set apart after some checkpoints.
    FilesBlocked,
    /// Its manifest is damaged, or its actor has panicked: it answers no requests.
    SetApart,
}

#[derive(Clone, Debug)]
pub(super) struct Bucket {
    pub(super) id: ObjectId,
    pub(super) ordinal: Option<u32>,
    pub(super) exists: bool,
    pub(super) days: u32,
    pub(super) sources: Vec<Source>,
    pub(super) requests: Vec<Request>,
    pub(super) condition: Condition,
}

/// A refused change. It may take effect after a restart, unless later records were logged.
#[derive(Clone, Copy, Debug)]
pub(super) enum UncertainChange {
    Bucket(usize),
    Source(usize, usize),
    /// Bucket, days, time, and number of earlier requests.
    Retention(usize, u32, i64, usize),
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) buckets: Vec<Bucket>,
    pub(super) uncertain_changes: Vec<UncertainChange>,
    /// Clock readings at the checkpoints since the start: UTC and monotonic.
    readings: VecDeque<(i64, i64)>,
    /// The greatest send time of all requests, by the clock at that time.
    newest_sent_ns: Option<i64>,
}

/// Older rows have expired.
pub(super) fn cutoff_ns(days: u32, now_ns: i64) -> i64 {
    let cutoff_ns = i128::from(now_ns) - i128::from(days) * i128::from(DAY_NS);
    cutoff_ns.max(EARLIEST_NS) as i64
}

impl Bucket {
    /// Whether a row must be visible (`true`), must be hidden (`false`), or may be either (`None`).
    pub(super) fn must_be_visible(&self, row: &Row, now_ns: i64) -> Option<bool> {
        let source = self.sources.iter().find(|it| it.ordinal == Some(row.source));
        let gone = row.expired_for_good || source.is_none_or(|it| !it.exists);
        if gone || row.timestamp_ns < cutoff_ns(self.days, now_ns) {
            return Some(false);
        }
        (!row.may_be_gone).then_some(true)
    }

    /// Changes the retention: of the requests sent so far, expired rows stay expired.
    pub(super) fn retain(&mut self, days: u32, at_ns: i64, sent_before: usize) {
        let cutoff_ns = cutoff_ns(self.days, at_ns);
        let rows = self.requests[..sent_before]
            .iter_mut()
            .flat_map(|it| &mut it.rows);
        for row in rows.filter(|row| row.timestamp_ns < cutoff_ns) {
            row.expired_for_good = true;
        }
        self.days = days;
    }

    /// A checkpoint may remove rows that had expired by then.
    pub(super) fn may_remove(&mut self, deletes_at_ns: i64) {
        let cutoff_ns = cutoff_ns(self.days, deletes_at_ns);
        for request in &mut self.requests {
            request.may_be_forgotten |= request.at_ns <= deletes_at_ns.saturating_sub(DAY_NS);
            for row in &mut request.rows {
                row.may_be_gone |= row.timestamp_ns < cutoff_ns;
            }
        }
    }

    pub(super) fn live_sources(&self) -> Vec<u32> {
        let live = self.sources.iter().filter(|source| source.exists);
        live.filter_map(|source| source.ordinal).collect()
    }
}

impl Model {
    pub(super) fn existing(&self) -> Vec<usize> {
        let exists = |index: &usize| self.buckets[*index].exists;
        (0..self.buckets.len()).filter(exists).collect()
    }

    /// Adds a request that was sent.
    pub(super) fn send(&mut self, bucket: usize, request: Request) -> usize {
        self.newest_sent_ns = self.newest_sent_ns.max(Some(request.at_ns));
        let requests = &mut self.buckets[bucket].requests;
        requests.push(request);
        requests.len() - 1
    }

    /// A later record was logged, so earlier refused requests are not in the log.
    pub(super) fn acknowledged(&mut self) {
        self.uncertain_changes.clear();
    }

    /// The greatest send time of all requests.
    pub(super) fn newest_sent_ns(&self) -> Option<i64> {
        self.newest_sent_ns
    }

    /// The greatest time of the requests that the rooms certainly know.
    fn newest_known_ns(&self) -> Option<i64> {
        let known = self
            .buckets
            .iter()
            .filter(|bucket| bucket.exists && bucket.condition != Condition::SetApart);
        let stored = known
            .flat_map(|bucket| &bucket.requests)
            .filter(|it| matches!(it.sent, Sent::Stored(_)));
        stored.map(|request| request.at_ns).max()
    }

    /// The latest expiry time of rows that a checkpoint may remove now; `None` if it may remove nothing.
    pub(super) fn deletes_at_ns(&mut self, now_ns: i64, monotonic_ns: i64) -> Option<i64> {
        let before = self.readings.iter();
        let hour_ago = before.filter(|(_, then_ns)| monotonic_ns - then_ns >= 60 * MINUTE_NS);
        let confirmed = hour_ago.map(|(then_ns, _)| (*then_ns).min(now_ns)).max();
        self.readings.push_back((now_ns, monotonic_ns));
        let ahead = self
            .newest_sent_ns
            .is_some_and(|it| now_ns > it.saturating_add(DAY_NS));
        let behind = self
            .newest_known_ns()
            .is_some_and(|it| now_ns < it.saturating_sub(DAY_NS));
        confirmed.filter(|_| !ahead && !behind)
    }

    pub(super) fn may_remove(&mut self, deletes_at_ns: Option<i64>) {
        if let Some(deletes_at_ns) = deletes_at_ns {
            self.buckets
                .iter_mut()
                .for_each(|it| it.may_remove(deletes_at_ns));
        }
    }

    /// A process has ended: refused changes may or may not have taken effect, and the readings of the clocks are lost.
    pub(super) fn restarted(&mut self) {
        self.readings.clear();
        for bucket in &mut self.buckets {
            let refused = bucket.requests.iter_mut().filter(|it| it.sent == Sent::Refused);
            refused.for_each(|request| request.sent = Sent::Unknown);
        }
    }
}
