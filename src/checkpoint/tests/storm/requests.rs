//! Requests, and changes of retention with related requests.

use std::ops::Range;

use super::super::live::Rooms;
use super::super::model as plain;
use super::super::record::ingest;
use super::model::{Request, Row, Sent, UncertainChange, cutoff_ns};
use super::steps::Storm;
use crate::bucket::{Digest, Ingested};
use crate::catalog::Command;
use crate::clock::{DAY_NS, MINUTE_NS, SECOND_NS};
use crate::error::ServiceError;

/// More than fill a block.
const MANY: u32 = 9_000;
/// The greatest number of rows in a request.
const REQUEST_ROWS: u32 = 1_500;
/// Approximate number of rows in a round: each comparison reads all of them.
const ROWS_MAX: u32 = 40_000;
impl Storm {
    /// Rows of one source with ages in this range, which the retention allows.
    fn rows(&mut self, index: usize, count: u32, ages_ns: Range<i64>, sorted: bool) -> Vec<Row> {
        let now_ns = self.now_ns();
        let bucket = &self.model.buckets[index];
        let (sources, oldest_ns) = (bucket.live_sources(), cutoff_ns(bucket.days, now_ns));
        let Some(first) = self.rng().choice(&sources).copied() else {
            return Vec::new();
        };
        let one_source = self.rng().bool();
        let mut ages: Vec<i64> = (0..count).map(|_| self.world.rng.i64(ages_ns.clone())).collect();
        if sorted {
            ages.sort_unstable_by_key(|age_ns| -age_ns);
        }
        let row = |age_ns: i64| {
            self.rows += 1;
            let any = sources[self.world.rng.usize(0..sources.len())];
            Row {
                source: if one_source { first } else { any },
                timestamp_ns: (now_ns - age_ns).max(oldest_ns),
                value: self.rows,
                expired_for_good: false,
                may_be_gone: false,
            }
        };
        ages.into_iter().map(row).collect()
    }

    async fn send(
        &mut self,
        rooms: &Rooms,
        index: usize,
        rows: Vec<Row>,
        key: Option<Digest>,
    ) -> Result<(), ServiceError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.counts.rows += rows.len() as u64;
        let bucket = self.bucket(rooms, index);
        let at_ns = self.now_ns();
        let plain = |row: &Row| plain::Row {
            source: row.source,
            timestamp_ns: row.timestamp_ns,
            value: row.value,
        };
        let plain: Vec<plain::Row> = rows.iter().map(plain).collect();
        let (must, may) = self.known(index, key);
        let request = self.model.send(
            index,
            Request {
                rows,
                key,
                at_ns,
                sent: Sent::Refused,
                may_be_forgotten: false,
            },
        );
        let record = ingest(bucket.ordinal, &plain, key, at_ns);
        match rooms.buckets.ingest(&bucket, record).await {
            Ok(Ingested::Stored { first_sequence }) => {
                assert!(!must, "a key is remembered for a day");
                self.model.buckets[index].requests[request].sent = Sent::Stored(first_sequence);
                self.model.acknowledged();
                Ok(())
            }
            Ok(Ingested::Replayed(_)) => {
                assert!(may, "a key is forgotten after a day, and a new one unknown");
                self.model.buckets[index].requests.remove(request);
                Ok(())
            }
            Ok(other) => panic!("a request was answered {other:?}"),
            Err(error) => Err(self.refused(index, error)),
        }
    }

    /// Whether a key must have its earlier answer, and whether it may.
    fn known(&self, index: usize, key: Option<Digest>) -> (bool, bool) {
        let now_ns = self.now_ns();
        let with_key = self.model.buckets[index]
            .requests
            .iter()
            .filter(|it| key.is_some() && it.key == key);
        let (mut must, mut may) = (false, false);
        for request in with_key {
            let stored =
                matches!(request.sent, Sent::Stored(_)) && request.at_ns > now_ns.saturating_sub(DAY_NS);
            must |= stored && !request.may_be_forgotten;
            may |= stored || request.sent == Sent::Unknown;
        }
        (must, may)
    }

    pub(super) async fn send_some(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let kept_ns = i64::from(self.model.buckets[index].days) * DAY_NS;
        let ages_ns = match self.rng().u8(0..10) {
            0..6 => 0..3_600 * SECOND_NS,
            6..9 => 0..kept_ns + 1,
            _ => -3 * DAY_NS..DAY_NS,
        };
        let count = match self.rng().u8(0..8) {
            0 => self.rng().u32(50..800),
            _ => self.rng().u32(1..12),
        };
        let sorted = self.rng().bool();
        let rows = self.rows(index, count, ages_ns, sorted);
        let key = (self.rng().u8(0..3) == 0).then(|| self.rng().u128(..).to_le_bytes());
        self.send(rooms, index, rows, key).await
    }

    /// Sends more rows than fill a block.
    pub(super) async fn send_many(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let kept_ns = i64::from(self.model.buckets[index].days) * DAY_NS;
        let youngest_ns = self.rng().i64(0..kept_ns);
        self.send_aged(rooms, index, youngest_ns..kept_ns, MANY).await
    }

    async fn send_aged(
        &mut self,
        rooms: &Rooms,
        index: usize,
        ages_ns: Range<i64>,
        count: u32,
    ) -> Result<(), ServiceError> {
        if self.rows > ROWS_MAX && count > REQUEST_ROWS {
            return Ok(());
        }
        let sorted = self.rng().bool();
        for first in (0..count).step_by(REQUEST_ROWS as usize) {
            let rows = self.rows(index, REQUEST_ROWS.min(count - first), ages_ns.clone(), sorted);
            self.send(rooms, index, rows, None).await?;
        }
        Ok(())
    }

    pub(super) async fn repeat(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let requests = &self.model.buckets[index].requests;
        let keys: Vec<Digest> = requests.iter().filter_map(|it| it.key).collect();
        // Mostly the last few: keys from before a clock advance have expired.
        let from = match self.rng().bool() {
            true => keys.len().saturating_sub(4),
            false => 0,
        };
        let Some(key) = self.rng().choice(&keys[from..]).copied() else {
            return Ok(());
        };
        let rows = self.rows(index, 3, 0..3_600 * SECOND_NS, true);
        self.send(rooms, index, rows, Some(key)).await
    }

    /// Changes the retention as the service does.
    pub(super) async fn retain(
        &mut self,
        rooms: &Rooms,
        index: usize,
        days: u32,
    ) -> Result<(), ServiceError> {
        if self.model.buckets[index].days == days {
            return Ok(());
        }
        let bucket = self.bucket(rooms, index);
        let at_ns = self.now_ns();
        let numbered = rooms.buckets.next_sequence(&bucket).await;
        let next_sequence = numbered.map_err(|error| self.refused(index, error))?;
        let sent_before = self.model.buckets[index].requests.len();
        if self.rng().u8(0..4) == 0 {
            // Points sent meanwhile are after the change in the log.
            self.send_some(rooms, index).await?;
        }
        let command = Command::BucketUpdated {
            bucket_id: bucket.id,
            name: bucket.name.clone(),
            description: None,
            retention_days: days,
            at_ns,
            next_sequence: Some(next_sequence),
            deliveries: Vec::new(),
            fan_out: None,
        };
        if let Err(error) = rooms.journal.commit(command).await {
            self.model
                .uncertain_changes
                .push(UncertainChange::Retention(index, days, at_ns, sent_before));
            return Err(self.refused(index, error));
        }
        self.model.acknowledged();
        let deletes_at_ns = self.deletes_at_ns;
        let bucket = &mut self.model.buckets[index];
        bucket.retain(days, at_ns, sent_before);
        if let Some(deletes_at_ns) = deletes_at_ns {
            bucket.may_remove(deletes_at_ns);
        }
        Ok(())
    }

    /// Increases the retention and immediately sends points that it now admits.
    pub(super) async fn backfill(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let days = self.model.buckets[index].days;
        let more = match self.rng().u8(0..10) {
            0 => self.rng().u32(300..4_000),
            _ => self.rng().u32(1..30),
        };
        self.retain(rooms, index, days + more).await?;
        let ages_ns = i64::from(days) * DAY_NS..i64::from(days + more) * DAY_NS + 1;
        let count = match self.rng().u8(0..8) {
            0 => MANY,
            _ => self.rng().u32(1..300),
        };
        self.send_aged(rooms, index, ages_ns, count).await
    }

    /// Increases the retention day by day, with rows of each, some of which expire before the next.
    pub(super) async fn extend_daily(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let hours = self.rng().i64(0..20).max(4) - 4;
        for _ in 0..self.rng().u32(2..30) {
            self.world.clock.advance(hours * 60 * MINUTE_NS);
            let days = self.model.buckets[index].days;
            self.retain(rooms, index, days + 1).await?;
            let ages_ns = i64::from(days) * DAY_NS..i64::from(days + 1) * DAY_NS + 1;
            self.send_aged(rooms, index, ages_ns, 2).await?;
        }
        Ok(())
    }

    pub(super) async fn shrink_and_grow(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let days = self.model.buckets[index].days;
        let lower = self.rng().u32(1..=days);
        self.retain(rooms, index, lower).await?;
        if self.rng().bool() {
            self.send_some(rooms, index).await?;
        }
        if self.rng().bool() {
            self.pass_time();
        }
        self.retain(rooms, index, days).await
    }

    /// Sends a row of the current time.
    pub(super) async fn send_one(&mut self, rooms: &Rooms, index: usize) -> Result<(), ServiceError> {
        let rows = self.rows(index, 1, 0..SECOND_NS, true);
        self.send(rooms, index, rows, None).await
    }
}
