//! What ingests in progress add to series: which new series they have, and until when their rows reach. Kept between the
//! moment in which the intake submits a record and the one in which it is applied or refused.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use engine::SERIES_ORDINALS_FROM;

use super::state::BucketState;
use super::{Digest, Ingest, Ingested, MayRepeat};
use crate::error::ServiceError;
use crate::ingest::SeriesRoom;

/// What all ingests in progress add.
#[derive(Default)]
pub(super) struct Additions {
    /// The ordinals of series that get their first points, new ones and those whose points have expired, and by how many
    /// ingests each is added.
    new: HashMap<Digest, (u32, u32)>,
    /// By ordinal of series that are stored only once: the greatest timestamp, and of how many ingests.
    newest: HashMap<u32, (i64, u32), foldhash::fast::RandomState>,
    /// Counted when there was no room; `None` before.
    expired: Option<Expired>,
}

/// The series in the store whose points have all expired, when they were counted. It holds until the store drops a
/// series.
#[derive(Clone, Copy)]
struct Expired {
    count: u64,
    /// They had no points from this time on.
    cutoff_ns: i64,
    /// Number of series that the store had dropped.
    removed: u64,
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
    /// The ordinals of those of them that existed.
    existed: Vec<u32>,
    once: Vec<u32>,
}

impl Additions {
    /// Notes what an ingest adds, and sets the ordinals of its series. The cost grows with the series that are new, with
    /// those that are stored only once, and, when the bucket may be full, with all series of the ingest.
    /// `is_behind_others`: whether ingests that came earlier wait for the series of an ordinal.
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
        let unknown = unknown.map(|series| series.digest);
        let digests = unknown.chain(without_points.iter().map(|(digest, _)| *digest));
        let wanted = digests.filter(|digest| !self.new.contains_key(digest)).count() as u64;
        let no_room = |series| {
            let without_points = without_points.iter().map(|(_, ordinal)| *ordinal);
            told(Ingested::NoRoom(SeriesRoom {
                series,
                series_max,
                without_points: Arc::new(without_points.collect()),
            }))
        };
        if wanted > 0 {
            let mut room = self.room(state, series_max);
            if wanted > room {
                self.count_expired(state, cutoff_ns(), now_ns);
                room = self.room(state, series_max);
            }
            if wanted > room {
                return Err(no_room(room));
            }
        }
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
                        self.forget(&taken);
                        return Err(no_room(0));
                    }
                },
            };
            taken.new.push(series.digest);
            series.ordinal = Some(ordinal);
        }
        for (digest, ordinal) in without_points {
            self.new.entry(digest).or_insert((ordinal, 0)).1 += 1;
            taken.new.push(digest);
            taken.existed.push(ordinal);
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

    /// Digests and ordinals of the series of an ingest that exist and have no points, or only expired ones: they need a
    /// place as new ones do. They are looked for only when the bucket may be full.
    fn without_points(
        &self,
        state: &BucketState,
        ingest: &Ingest,
        series_max: u64,
        cutoff_ns: impl FnOnce() -> i64,
    ) -> Vec<(Digest, u32)> {
        let held = state.store.series_count() + self.new.len() as u64;
        if held + ingest.series.len() as u64 <= series_max {
            return Vec::new();
        }
        let cutoff_ns = cutoff_ns();
        let has_none = |ordinal: &u32| has_expired(state, *ordinal, cutoff_ns);
        let series = ingest.series.iter();
        series
            .filter_map(|it| Some((it.digest, it.ordinal.filter(has_none)?)))
            .collect()
    }

    /// Number of series that may be added.
    pub(super) fn room(&self, state: &BucketState, series_max: u64) -> u64 {
        let expired = self
            .expired
            .filter(|it| it.removed == state.store.removed_series());
        let expired = expired.map_or(0, |expired| expired.count);
        let held = state.store.series_count().saturating_sub(expired);
        series_max.saturating_sub(held + self.new.len() as u64)
    }

    /// Counts the series whose points have all expired, which need no room. Looks at each series, so the count is kept for
    /// a while, unless series were dropped meanwhile.
    pub(super) fn count_expired(&mut self, state: &BucketState, cutoff_ns: i64, now_ns: i64) {
        let removed = state.store.removed_series();
        let is_known =
            |it: &Expired| it.removed == removed && (it.at_ns..it.at_ns + EXPIRED_KEPT_NS).contains(&now_ns);
        if self.expired.as_ref().is_some_and(is_known) {
            return;
        }
        let view = state.store.view();
        let series = view.split_sources().filter_map(|source| view.members(source));
        let has_expired = |ordinal: &u32| has_expired(state, *ordinal, cutoff_ns);
        let count = series.map(|members| members.iter().filter(has_expired).count() as u64);
        self.expired = Some(Expired {
            count: count.sum(),
            cutoff_ns,
            removed,
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

    /// The ingest will be applied now, or was refused. Gives the ordinals of series of which none is in progress any more to
    /// `freed`.
    pub(super) fn end(
        &mut self,
        state: &BucketState,
        ingest: &OfIngest,
        is_applied: bool,
        mut freed: impl FnMut(u32),
    ) {
        if is_applied {
            // They exist now, whoever else adds points to them.
            for digest in &ingest.new {
                self.new.remove(digest);
            }
        } else {
            self.forget(ingest);
        }
        if let Some(expired) = self.expired.as_mut().filter(|_| is_applied) {
            // The first ingest of a series that is applied finds it as it was counted.
            let was_counted = |ordinal: &&u32| {
                let newest_ns = state.store.newest_ns(**ordinal);
                newest_ns.is_some_and(|ns| ns < expired.cutoff_ns)
            };
            let counted = ingest.existed.iter().filter(was_counted).count() as u64;
            expired.count = expired.count.saturating_sub(counted);
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

    /// The series that the ingest adds are not in progress any more, as far as it is concerned.
    fn forget(&mut self, ingest: &OfIngest) {
        for digest in &ingest.new {
            if let Entry::Occupied(mut entry) = self.new.entry(*digest) {
                entry.get_mut().1 -= 1;
                if entry.get().1 == 0 {
                    entry.remove();
                }
            }
        }
    }
}

/// Whether a series in the index has no points from this time on.
fn has_expired(state: &BucketState, ordinal: u32, cutoff_ns: i64) -> bool {
    state.store.newest_ns(ordinal).is_none_or(|ns| ns < cutoff_ns)
}

/// The ordinal of the series of a table; `None` if it is new.
fn ordinal_of(ingest: &Ingest, table: u32) -> Option<u32> {
    match table.checked_sub(SERIES_ORDINALS_FROM) {
        None => Some(table),
        Some(place) => ingest.series.get(place as usize)?.ordinal,
    }
}

#[cfg(test)]
mod tests {
    use engine::rows::RowsWriter;
    use engine::{Cache, SeriesRef};

    use super::*;
    use crate::ingest::RequestSeries;
    use crate::journal::{IngestRecord, RecordSeries};
    use crate::ledger::Ledger;
    use crate::series::{Labels, LabelsWriter, NewSeries, digest_of};

    const SOURCE: u32 = 5;
    const SERIES_MAX: u64 = 2;
    /// Points before this time have expired.
    const CUTOFF_NS: i64 = 1_000;

    struct World {
        state: BucketState,
        additions: Additions,
    }

    fn labels(host: &str) -> Labels {
        let mut writer = LabelsWriter::default();
        writer.push("host", host);
        let mut encoded = Vec::new();
        writer.encode(&mut encoded);
        Labels::decode(&encoded).unwrap()
    }

    /// A point of the first series of a record, encoded.
    fn point(at_ns: i64) -> Vec<u8> {
        let mut rows = RowsWriter::new();
        rows.begin(SERIES_ORDINALS_FROM);
        rows.number(0, 1.0, 0);
        rows.commit(at_ns);
        let mut encoded = Vec::new();
        rows.encode(&mut encoded);
        encoded
    }

    /// An ingest with a point of the series of this host.
    fn ingest(state: &BucketState, host: &str, at_ns: i64, now_ns: i64) -> Ingest {
        let labels = labels(host);
        let digest = digest_of(SOURCE, labels.as_bytes());
        let ordinal = state.series.find(SOURCE, &digest).unwrap();
        let series = SeriesRef {
            ordinal: ordinal.unwrap_or_default(),
            source: SOURCE,
        };
        let of_record = RecordSeries {
            series,
            labels: ordinal.is_none().then_some(labels.as_bytes()),
        };
        let rows = point(at_ns);
        Ingest {
            record: IngestRecord::new(state.ordinal, now_ns, 1, None, &[of_record], |out| {
                out.extend(rows);
                false
            }),
            rows: 1,
            memory_bytes: 0,
            sources: vec![SOURCE],
            series: vec![RequestSeries {
                source: SOURCE,
                digest,
                ordinal,
                labels: labels.as_bytes().to_vec(),
            }],
            repeats: Vec::new(),
            idempotency: None,
            now_ns,
            releases: 0,
            alone: None,
        }
    }

    impl World {
        /// A full bucket whose series `a` and `b` have expired.
        fn full() -> Self {
            let state = BucketState::new(1, Cache::new(1 << 20), Ledger::default()).unwrap();
            let mut world = World {
                state,
                additions: Additions::default(),
            };
            for host in ["a", "b"] {
                let (ingest, taken) = world.admit(host, 0).unwrap();
                world.apply(host, &ingest, &taken, 0);
            }
            world
        }

        fn admit(&mut self, host: &str, now_ns: i64) -> Result<(Ingest, OfIngest), u64> {
            let mut ingest = ingest(&self.state, host, now_ns, now_ns);
            let admitted =
                self.additions
                    .admit(&self.state, &mut ingest, SERIES_MAX, |_| CUTOFF_NS, |_| false);
            match admitted {
                Ok(taken) => Ok((ingest, taken)),
                Err(Refused::With(Ok(Ingested::NoRoom(room)))) => Err(room.series),
                Err(_) => panic!("only room may be missing"),
            }
        }

        fn apply(&mut self, host: &str, ingest: &Ingest, taken: &OfIngest, at_ns: i64) {
            self.additions.end(&self.state, taken, true, |_| {});
            let series = SeriesRef {
                ordinal: ingest.series[0].ordinal.unwrap(),
                source: SOURCE,
            };
            self.state.series.add(&[NewSeries {
                series,
                labels: labels(host),
            }]);
            self.state.store.apply(&point(at_ns), 1, &[series]).unwrap();
        }

        fn refuse(&mut self, taken: &OfIngest) {
            self.additions.end(&self.state, taken, false, |_| {});
        }

        fn room(&mut self, now_ns: i64) -> u64 {
            self.additions.count_expired(&self.state, CUTOFF_NS, now_ns);
            self.additions.room(&self.state, SERIES_MAX)
        }
    }

    const NOW_NS: i64 = 2_000;
    const LATER_NS: i64 = NOW_NS + EXPIRED_KEPT_NS;

    #[test]
    fn expired_series_that_come_back_take_one_place_each() {
        let mut world = World::full();
        let (a, of_a) = world.admit("a", NOW_NS).unwrap();
        let (_, again) = world.admit("a", NOW_NS).unwrap();
        let (_, of_b) = world.admit("b", NOW_NS).unwrap();
        assert_eq!(world.admit("c", NOW_NS).err(), Some(0), "both places are taken");
        world.refuse(&of_b);
        assert_eq!(world.room(NOW_NS), 1, "b has no point");
        world.apply("a", &a, &of_a, NOW_NS);
        assert_eq!(world.room(NOW_NS), 1, "a has a point");
        world.refuse(&again);
        assert_eq!(world.room(NOW_NS), 1);
        let (c, of_c) = world.admit("c", NOW_NS).unwrap();
        assert_eq!(world.admit("b", NOW_NS).err(), Some(0), "c is in progress");
        world.apply("c", &c, &of_c, NOW_NS);
        assert_eq!(world.admit("b", NOW_NS).err(), Some(0));
        assert!(world.admit("a", NOW_NS).is_ok(), "it has a point");
        assert_eq!(world.admit("b", LATER_NS).err(), Some(0), "counted again");
    }

    #[test]
    fn a_count_while_a_series_comes_back_is_right_before_and_after() {
        for is_applied in [false, true] {
            let mut world = World::full();
            let (a, of_a) = world.admit("a", NOW_NS).unwrap();
            assert_eq!(world.room(LATER_NS), 1, "counted again meanwhile");
            match is_applied {
                true => world.apply("a", &a, &of_a, LATER_NS),
                false => world.refuse(&of_a),
            }
            let expected = if is_applied { 1 } else { 2 };
            assert_eq!(world.room(LATER_NS), expected, "{is_applied}");
            assert_eq!(world.room(LATER_NS + EXPIRED_KEPT_NS), expected, "{is_applied}");
        }
    }

    #[test]
    fn a_count_from_before_the_store_dropped_series_does_not_count() {
        let mut world = World::full();
        assert_eq!(world.room(NOW_NS), 2);
        world.state.store.remove_source(SOURCE);
        assert_eq!(world.room(NOW_NS), 2, "two places are all that there are");
        for host in ["c", "d"] {
            let (ingest, taken) = world.admit(host, NOW_NS).unwrap();
            world.apply(host, &ingest, &taken, NOW_NS);
        }
        assert_eq!(world.additions.room(&world.state, SERIES_MAX), 0);
        assert_eq!(
            world.admit("a", NOW_NS).err(),
            Some(0),
            "it is known, and has no points"
        );
    }
}
