//! Whether sources send as often as expected, and the events when that changes (contract, chapter 14). What webhooks have
//! heard is in the log and the catalog, so that they hear of each change once, also after a restart.

mod watch;

use std::collections::HashMap;
use std::sync::Arc;

use super::Service;
use super::events::Events;
use crate::catalog::{Bucket, Command, Event, Freshness, FreshnessChange, NewDeliveries, Source};
use crate::clock::SECOND_NS;
use crate::delivery::{NewPoints, StaleSource};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

pub use watch::{Arrival, Watch};

/// Sources that are looked at before their changes are written together.
const LOOKS_MAX: usize = 1_024;
/// After this time a source whose points could not be read is looked at again.
const UNREADABLE_PAUSE_NS: i64 = 60 * SECOND_NS;

/// A source that was looked at.
struct Look {
    bucket: Arc<Bucket>,
    source: Arc<Source>,
    /// The newest point, UTC nanoseconds.
    newest_ns: Option<i64>,
    /// The point that was waited for.
    arrived: Option<Arrival>,
}

impl Service {
    /// Starts to watch all sources that are expected to send.
    pub(super) fn watch_sources(&self) {
        self.catalog.read(|catalog| {
            let sources = catalog.buckets().flat_map(|bucket| catalog.sources_of(bucket.id));
            let watched =
                sources.filter(|it| it.expected_interval_seconds.is_some() || it.stale_since_ns.is_some());
            watched.for_each(|source| self.watch.look(source.id));
        });
    }

    /// Notes points that may end a silence.
    pub(super) fn note_arrival(&self, points: &NewPoints) {
        if self.watch.waits_for(points.bucket_id) {
            let received_ns = points.received_at_ns;
            let rows = points.rows.rows().iter().map(|row| {
                let point_ns = row.timestamp_ns;
                let arrival = Arrival {
                    point_ns,
                    received_ns,
                };
                (row.source, arrival)
            });
            self.watch.arrived(points.bucket_id, rows);
        }
    }

    /// Records which sources have become stale or fresh, and has webhooks told. Call it once a second.
    ///
    /// # Errors
    /// 503 if the log refuses writes; the next call tries again.
    pub async fn tell_freshness(&self) -> Result<(), ServiceError> {
        loop {
            let now_ns = self.now_ns();
            let ids = self.watch.take(now_ns, LOOKS_MAX);
            if ids.is_empty() {
                return Ok(());
            }
            let told = self.tell_freshness_of(&ids, now_ns).await;
            if told.is_err() {
                ids.into_iter().for_each(|id| self.watch.look(id));
                return told;
            }
        }
    }

    async fn tell_freshness_of(&self, ids: &[ObjectId], now_ns: i64) -> Result<(), ServiceError> {
        let looks = self.look_at(ids, now_ns).await;
        let events = self.events();
        let changes: Vec<_> = looks
            .iter()
            .filter_map(|look| look.change(&events, now_ns))
            .collect();
        if !changes.is_empty() {
            let deliveries = changes.iter().flat_map(|change| change.told.ids()).collect();
            let at_ns = now_ns;
            let command = Command::FreshnessChanged { changes, at_ns };
            self.decisions.commit_observed(command).await?;
            self.deliveries.queued(deliveries);
        }
        for look in &looks {
            let until_ns = look.source.fresh_until_ns(look.newest_ns);
            if let Some(until_ns) = until_ns.filter(|until_ns| *until_ns >= now_ns) {
                self.watch.stop_waiting(&look.source);
                self.watch
                    .look_at(look.source.id, Some(until_ns.saturating_add(1)));
            }
        }
        Ok(())
    }

    /// Reads the newest points. From here on points of these sources are waited for, so that none is missed.
    async fn look_at(&self, ids: &[ObjectId], now_ns: i64) -> Vec<Look> {
        let mut by_bucket: HashMap<ObjectId, (Arc<Bucket>, Vec<Arc<Source>>)> = HashMap::new();
        self.catalog.read(|catalog| {
            for source in ids.iter().filter_map(|id| catalog.source(*id)) {
                if let Some(bucket) = catalog.bucket(source.bucket_id) {
                    let entry = by_bucket.entry(bucket.id);
                    let (_, sources) = entry.or_insert_with(|| (Arc::clone(bucket), Vec::new()));
                    sources.push(Arc::clone(source));
                }
            }
        });
        let mut looks = Vec::with_capacity(ids.len());
        for (bucket, sources) in by_bucket.into_values() {
            let wait_for = |source: &Arc<Source>| match source.fresh_for_ns() {
                Some(fresh_for_ns) => self.watch.wait_for(source, fresh_for_ns),
                None => {
                    self.watch.stop_waiting(source);
                    None
                }
            };
            let arrived: Vec<_> = sources.iter().map(wait_for).collect();
            let ordinals: Vec<u32> = sources.iter().map(|source| source.ordinal).collect();
            let stats = match self.buckets.stats(&bucket, &ordinals).await {
                Ok(stats) => stats,
                Err(error) => {
                    tracing::debug!(%error, bucket = %bucket.id, "the freshness of sources is not known for now");
                    let again_ns = now_ns.saturating_add(UNREADABLE_PAUSE_NS);
                    sources
                        .iter()
                        .for_each(|it| self.watch.look_at(it.id, Some(again_ns)));
                    continue;
                }
            };
            let found = sources.into_iter().zip(arrived).zip(stats);
            looks.extend(found.map(|((source, arrived), stats)| Look {
                bucket: Arc::clone(&bucket),
                source,
                newest_ns: stats.points.bounds_ns.map(|(_, newest_ns)| newest_ns),
                arrived,
            }));
        }
        looks
    }
}

impl Look {
    /// What changes against what webhooks have heard.
    fn change(&self, events: &Events, now_ns: i64) -> Option<FreshnessChange> {
        let source = &self.source;
        let known = source.stale_since_ns;
        let (stale_since_ns, told) = match (source.freshness(self.newest_ns, now_ns), known) {
            (Freshness::Stale, None) => {
                let since_ns = source.fresh_until_ns(self.newest_ns)?;
                let told = self.told(
                    events,
                    Event::SourceStale,
                    self.newest_ns?,
                    since_ns,
                    None,
                    now_ns,
                );
                (Some(since_ns), told)
            }
            (Freshness::Fresh, Some(since_ns)) if self.was_known(since_ns, now_ns) => {
                let ended = self.arrived.map(|it| (it.point_ns, it.received_ns));
                let (point_ns, recovered_ns) = ended.unwrap_or((self.newest_ns?, now_ns));
                let event = Event::SourceRecovered;
                (
                    None,
                    self.told(events, event, point_ns, since_ns, Some(recovered_ns), now_ns),
                )
            }
            // Of unknown sources nothing is told.
            (Freshness::Fresh | Freshness::Unknown, Some(_)) => (None, NewDeliveries::default()),
            _ => return None,
        };
        Some(FreshnessChange {
            source_id: source.id,
            stale_since_ns,
            told,
        })
    }

    /// Whether the point after which the source was stale has not expired before the next one came. If it has, the source was
    /// unknown in between.
    fn was_known(&self, stale_since_ns: i64, now_ns: i64) -> bool {
        let fresh_for_ns = self.source.fresh_for_ns().unwrap_or(0);
        stale_since_ns.saturating_sub(fresh_for_ns) >= self.bucket.retention_cutoff_ns(now_ns)
    }

    fn told(
        &self,
        events: &Events,
        event: Event,
        point_ns: i64,
        since_ns: i64,
        recovered_ns: Option<i64>,
        now_ns: i64,
    ) -> NewDeliveries {
        let data = StaleSource {
            data_source_id: self.source.id,
            data_source_name: &self.source.name,
            expected_interval_seconds: self.source.expected_interval_seconds,
            last_data_point: Timestamp(point_ns),
            stale_since: Timestamp(since_ns),
            recovered_at: recovered_ns.map(Timestamp),
        };
        events.to_webhooks(event, &self.bucket, now_ns, &data)
    }
}
