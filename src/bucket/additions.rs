//! What ingests in progress add to series: which new series they have, and until when their rows reach. Kept between the
//! moment in which the actor submits a record and the one in which it is applied or refused.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use engine::SERIES_ORDINALS_FROM;

use super::state::BucketState;
use super::{Digest, Ingest, Ingested, MayRepeat};
use crate::error::ServiceError;
use crate::ingest::{RequestSeries, SeriesRoom};

/// What all ingests in progress add.
#[derive(Default)]
pub(super) struct Additions {
    /// The ordinals of new series and of those without points, and by how many ingests each is added.
    new: HashMap<Digest, (u32, u32)>,
    /// By ordinal of series that are stored only once: the greatest timestamp, and of how many ingests.
    newest: HashMap<u32, (i64, u32)>,
    /// Counted when there was no room; `None` before.
    expired: Option<Expired>,
}

/// Series whose points have all expired, when they were counted.
#[derive(Clone, Copy)]
struct Expired {
    count: u64,
    /// Of this many series.
    of: u64,
    at_ns: i64,
}

/// How long that count is used.
const EXPIRED_KEPT_NS: i64 = 60 * 1_000_000_000;

/// Why an ingest is not submitted.
pub(super) enum Refused {
    /// The sender is told this.
    With(Result<Ingested, ServiceError>),
    /// It has to wait for others that came earlier, with rows of the series of this ordinal.
    Waits(u32),
}

/// Whether rows that were not compared may be there already.
enum Repeats {
    No,
    /// As rows that are stored.
    Stored,
    /// That is known when earlier ingests are decided, with rows of the series of this ordinal.
    Open(u32),
}

/// What one ingest adds.
#[derive(Default)]
pub(super) struct OfIngest {
    new: Vec<Digest>,
    once: Vec<u32>,
}

impl Additions {
    /// Notes what an ingest adds, and sets the ordinals of its series. The cost grows with the series that are new, and
    /// with those that are stored only once. `is_behind_others`: whether ingests that came earlier wait for the series of an
    /// ordinal.
    ///
    /// # Errors
    /// What the sender has to be told instead.
    pub(super) fn admit(
        &mut self,
        state: &BucketState,
        ingest: &mut Ingest,
        series_max: u64,
        cutoff_ns: impl Fn(i64) -> i64,
        is_behind_others: impl Fn(u32) -> bool,
    ) -> Result<OfIngest, Refused> {
        let mut taken = OfIngest::default();
        let told = |ingested| Refused::With(Ok(ingested));
        self.look_up(state, ingest)
            .map_err(|error| Refused::With(Err(error)))?;
        let now_ns = ingest.now_ns;
        let cutoff_ns = || cutoff_ns(now_ns);
        let without_points = self.without_points(state, ingest, series_max, cutoff_ns);
        let unknown = ingest.series.iter().filter(|series| series.ordinal.is_none());
        let unknown = unknown.filter(|series| !self.new.contains_key(&series.digest));
        let wanted = (unknown.count() + without_points.len()) as u64;
        if wanted > 0 {
            let mut room = self.room(state, series_max);
            if wanted > room {
                self.count_expired(state, cutoff_ns(), now_ns);
                room = self.room(state, series_max);
            }
            if wanted > room {
                let ordinals = without_points.into_iter().filter_map(|series| series.ordinal);
                return Err(told(Ingested::NoRoom(SeriesRoom {
                    series: room,
                    series_max,
                    without_points: Arc::new(ordinals.collect()),
                })));
            }
        }
        let without_points: Vec<(Digest, u32)> = without_points
            .into_iter()
            .filter_map(|series| Some((series.digest, series.ordinal?)))
            .collect();
        for rows in &ingest.repeats {
            match self.repeats(state, ingest, rows, &is_behind_others) {
                Repeats::No => {}
                Repeats::Open(series) => return Err(Refused::Waits(series)),
                Repeats::Stored => return Err(told(Ingested::MayRepeat)),
            }
        }
        for place in 0..ingest.series.len() {
            let series = &mut ingest.series[place];
            if series.ordinal.is_some() {
                continue;
            }
            let ordinal = match self.new.entry(series.digest) {
                Entry::Occupied(mut known) => {
                    known.get_mut().1 += 1;
                    known.get().0
                }
                Entry::Vacant(vacant) => match state.series.take_ordinal() {
                    Some(ordinal) => vacant.insert((ordinal, 1)).0,
                    None => {
                        self.end(&taken, |_| {});
                        return Err(told(Ingested::NoRoom(SeriesRoom {
                            series: 0,
                            series_max,
                            without_points: Arc::default(),
                        })));
                    }
                },
            };
            taken.new.push(series.digest);
            series.ordinal = Some(ordinal);
        }
        for (digest, ordinal) in without_points {
            self.new.insert(digest, (ordinal, 1));
            taken.new.push(digest);
            // It was counted as expired, and will have points.
            if let Some(expired) = &mut self.expired
                && state.store.newest_ns(ordinal).is_some()
            {
                expired.count = expired.count.saturating_sub(1);
            }
        }
        for (place, series) in ingest.series.iter().enumerate() {
            if let Some(ordinal) = series.ordinal {
                ingest.record.set_series(place, ordinal);
            }
        }
        for rows in &ingest.repeats {
            let Some(ordinal) = ordinal_of(ingest, rows.table) else {
                continue;
            };
            let (newest_ns, count) = self.newest.entry(ordinal).or_insert((i64::MIN, 0));
            *newest_ns = rows.newest_ns.max(*newest_ns);
            *count += 1;
            taken.once.push(ordinal);
        }
        Ok(taken)
    }

    /// The series of an ingest that exist and have no points, or only expired ones: they need a place as new ones do. They
    /// are looked for only when the bucket may be full without them.
    fn without_points<'i>(
        &self,
        state: &BucketState,
        ingest: &'i Ingest,
        series_max: u64,
        cutoff_ns: impl FnOnce() -> i64,
    ) -> Vec<&'i RequestSeries> {
        let held = state.store.series_count() + self.new.len() as u64;
        if held + ingest.series.len() as u64 <= series_max {
            return Vec::new();
        }
        let cutoff_ns = cutoff_ns();
        let has_none = |ordinal| state.store.newest_ns(ordinal).is_none_or(|ns| ns < cutoff_ns);
        let series = ingest.series.iter();
        series
            .filter(|it| it.ordinal.is_some_and(has_none) && !self.new.contains_key(&it.digest))
            .collect()
    }

    /// Number of series that may be added.
    pub(super) fn room(&self, state: &BucketState, series_max: u64) -> u64 {
        let expired = self.expired.map_or(0, |expired| expired.count);
        let held = state.store.series_count().saturating_sub(expired);
        series_max.saturating_sub(held + self.new.len() as u64)
    }

    /// Counts the series whose points have all expired, which need no room. Looks at each series, so the count is kept for
    /// a while, unless series were dropped meanwhile.
    pub(super) fn count_expired(&mut self, state: &BucketState, cutoff_ns: i64, now_ns: i64) {
        let held = state.store.series_count();
        let is_known =
            |it: &Expired| held >= it.of && (it.at_ns..it.at_ns + EXPIRED_KEPT_NS).contains(&now_ns);
        if self.expired.as_ref().is_some_and(is_known) {
            return;
        }
        let view = state.store.view();
        let series = view.split_sources().filter_map(|source| view.members(source));
        let has_expired = |ordinal: &u32| state.store.newest_ns(*ordinal).is_none_or(|ns| ns < cutoff_ns);
        let count = series.map(|members| members.iter().filter(has_expired).count() as u64);
        self.expired = Some(Expired {
            count: count.sum(),
            of: held,
            at_ns: now_ns,
        });
    }

    /// Sets the ordinals of series that have been added since the request looked for them.
    fn look_up(&self, state: &BucketState, ingest: &mut Ingest) -> Result<(), ServiceError> {
        for series in ingest.series.iter_mut().filter(|series| series.ordinal.is_none()) {
            let found = state.series.find(series.source, &series.digest);
            series.ordinal = found.map_err(ServiceError::internal)?;
        }
        Ok(())
    }

    fn repeats(
        &self,
        state: &BucketState,
        ingest: &Ingest,
        rows: &MayRepeat,
        is_behind_others: impl Fn(u32) -> bool,
    ) -> Repeats {
        let ordinal = ordinal_of(ingest, rows.table);
        // A new series may be added by another ingest in progress.
        let ordinal = ordinal.or_else(|| {
            let place = rows.table.checked_sub(SERIES_ORDINALS_FROM)?;
            Some(self.new.get(&ingest.series.get(place as usize)?.digest)?.0)
        });
        let (Some(ordinal), Some(oldest_ns)) = (ordinal, rows.oldest_unchecked_ns) else {
            return Repeats::No;
        };
        let reaches = |newest_ns: Option<i64>| newest_ns.is_some_and(|newest_ns| oldest_ns <= newest_ns);
        let submitted = self.newest.get(&ordinal).map(|(newest_ns, _)| *newest_ns);
        if reaches(submitted) {
            return Repeats::Open(ordinal);
        }
        if reaches(state.store.newest_ns(ordinal)) {
            return Repeats::Stored;
        }
        match is_behind_others(ordinal) {
            true => Repeats::Open(ordinal),
            false => Repeats::No,
        }
    }

    /// The ingest was applied, or refused. Gives the ordinals of series of which none is in progress any more to `freed`.
    pub(super) fn end(&mut self, ingest: &OfIngest, mut freed: impl FnMut(u32)) {
        for digest in &ingest.new {
            if let Entry::Occupied(mut entry) = self.new.entry(*digest) {
                entry.get_mut().1 -= 1;
                if entry.get().1 == 0 {
                    entry.remove();
                }
            }
        }
        for ordinal in &ingest.once {
            if let Entry::Occupied(mut entry) = self.newest.entry(*ordinal) {
                entry.get_mut().1 -= 1;
                if entry.get().1 == 0 {
                    entry.remove();
                    freed(*ordinal);
                }
            }
        }
    }
}

/// The ordinal of the series of a table; `None` if it is new.
fn ordinal_of(ingest: &Ingest, table: u32) -> Option<u32> {
    match table.checked_sub(SERIES_ORDINALS_FROM) {
        None => Some(table),
        Some(place) => ingest.series.get(place as usize)?.ordinal,
    }
}
