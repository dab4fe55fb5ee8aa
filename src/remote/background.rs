//! Publishing on a thread of its own, for a server on one machine: checkpoints, ingest and the log never wait for the
//! object store. Only the newest manifest waits to be published.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use disk::Disk;
use parking_lot::{Condvar, Mutex};

use super::error::RemoteError;
use super::offer::Offer;
use super::publisher::{Publisher, PublisherOptions};
use crate::checkpoint::{Layout, Manifest, Publish, PublishFigures};
use crate::clock::Clock;
use crate::priority;

/// Time between two roots, so that a day has a bounded number of them.
const GAP: Duration = Duration::from_secs(10);
/// Pause after the first failure. It doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause, within which a store that is back is noticed.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Handle of the thread.
#[derive(Clone)]
pub struct Publishing {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// What is under way is given up.
    given_up: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The newest manifest that is not published.
    offer: Option<Offer>,
    /// Whether an attempt is under way.
    busy: bool,
    /// Whether the server stops: the last offer is tried once.
    stops: bool,
    ended: bool,
}

/// The checkpointer's end.
struct Offers {
    disk: Arc<dyn Disk>,
    layout: Layout,
    clock: Arc<dyn Clock>,
    period: Duration,
    stored: Arc<Mutex<BTreeSet<String>>>,
    figures: Arc<PublishFigures>,
    shared: Arc<Shared>,
    /// A manifest whose files could not be opened.
    failed: Option<Manifest>,
}

/// When the next attempt is due, and whether there is an outage. Time is an argument of each call.
struct Pace {
    gap: Duration,
    due: Instant,
    /// The pause after the last failure; `None` after a success.
    pause: Option<Duration>,
}

impl Pace {
    fn new(now: Instant, gap: Duration) -> Self {
        Pace {
            gap,
            due: now,
            pause: None,
        }
    }

    /// Returns whether an outage has ended.
    fn succeeded(&mut self, now: Instant) -> bool {
        self.due = now + self.gap;
        self.pause.take().is_some()
    }

    /// Returns whether an outage has begun.
    fn failed(&mut self, now: Instant) -> bool {
        let begins = self.pause.is_none();
        let pause = self.pause.map_or(PAUSE_MIN, |last| (last * 2).min(PAUSE_MAX));
        self.pause = Some(pause);
        self.due = now + pause;
        begins
    }
}

impl Publishing {
    /// Starts the thread. The second value is for the checkpointer, which takes checkpoints at least once per `period`.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn start(options: PublisherOptions, period: Duration) -> io::Result<(Self, Box<dyn Publish>)> {
        let (disk, layout) = (Arc::clone(&options.disk), options.layout.clone());
        let clock = Arc::clone(&options.clock);
        let publisher = Publisher::new(options);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            given_up: AtomicBool::new(false),
        });
        let offers = Offers {
            disk,
            layout,
            clock,
            period,
            stored: publisher.stored(),
            figures: publisher.figures(),
            shared: Arc::clone(&shared),
            failed: None,
        };
        let of_thread = Ended(Arc::clone(&shared));
        std::thread::Builder::new()
            .name("publish".to_owned())
            .spawn(move || {
                priority::lower();
                of_thread.0.run(publisher, GAP.min(period));
            })?;
        Ok((Publishing { shared }, Box::new(offers)))
    }

    /// Publishes the last checkpoint, if that succeeds at the first attempt and within this time. Blocks the thread.
    /// Returns whether nothing is left to be published.
    pub fn stop(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        let mut state = self.shared.state.lock();
        state.stops = true;
        self.shared.changed.notify_all();
        while !state.ended {
            if self.shared.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        self.shared.given_up.store(true, Ordering::Relaxed);
        state.ended && state.offer.is_none()
    }
}

/// Reports the end of the thread, also if it panics.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(
                "the thread that publishes checkpoints panicked; nothing is published until a restart"
            );
        }
        self.0.state.lock().ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn run(&self, mut publisher: Publisher, gap: Duration) {
        let mut pace = Pace::new(Instant::now(), gap);
        while let Some((offer, is_last)) = self.next(pace.due) {
            let goes_on = || !self.given_up.load(Ordering::Relaxed);
            match publisher.publish(&offer, &goes_on) {
                Ok(_) => {
                    if pace.succeeded(Instant::now()) {
                        tracing::info!("checkpoints are published again");
                    }
                }
                Err(error) => {
                    if pace.failed(Instant::now()) {
                        tracing::warn!(%error, "a checkpoint could not be published; it is tried again, and what is newer than the last one is on this disk only");
                    }
                    // Unless there is a newer one.
                    self.state.lock().offer.get_or_insert(offer);
                }
            }
            self.state.lock().busy = false;
            if is_last {
                return;
            }
            if let Err(error) = publisher.sweep_if_due() {
                tracing::warn!(%error, "old objects could not be deleted yet; it is tried again in an hour");
            }
        }
    }

    /// Waits for an offer, and until it is due; returns `None` when the server stops and nothing is left. The second
    /// value says whether it stops.
    fn next(&self, due: Instant) -> Option<(Offer, bool)> {
        let mut state = self.state.lock();
        loop {
            if state.stops || (state.offer.is_some() && Instant::now() >= due) {
                let offer = state.offer.take();
                state.busy = offer.is_some();
                return offer.map(|offer| (offer, state.stops));
            }
            match &state.offer {
                Some(_) => drop(self.changed.wait_until(&mut state, due)),
                None => self.changed.wait(&mut state),
            }
        }
    }
}

impl Offers {
    fn collect(&mut self, manifest: &Manifest) -> Result<(), RemoteError> {
        let stored = self.stored.lock();
        let offer = Offer::collect(&self.disk, &self.layout, manifest, &stored)?;
        drop(stored);
        self.shared.state.lock().offer = Some(offer);
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl Publish for Offers {
    fn offer(&mut self, manifest: &Manifest) {
        self.failed = None;
        if let Err(error) = self.collect(manifest) {
            tracing::warn!(%error, "a checkpoint is not published; the next one is");
            self.failed = Some(manifest.clone());
        }
    }

    /// Does not wait. Tries again what failed on this machine, and notes if nothing is newer than what is published.
    fn before_trim(&mut self) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        if let Some(manifest) = self.failed.take() {
            self.offer(&manifest);
        }
        let state = self.shared.state.lock();
        let waits = state.busy || state.offer.is_some() || self.failed.is_some();
        if !waits && self.figures.published.load(Ordering::Relaxed) > 0 {
            let now_ns = self.clock.monotonic_ns().max(1);
            self.figures.published_at_ns.store(now_ns, Ordering::Relaxed);
        }
        Ok(None)
    }

    fn period(&self) -> Duration {
        self.period
    }

    fn figures(&self) -> Arc<PublishFigures> {
        Arc::clone(&self.figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_once_and_ends_once() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now, GAP);
        assert!(!pace.succeeded(now));
        assert_eq!(pace.due, now + GAP);
        for (attempt, seconds) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
            assert_eq!(pace.failed(now), attempt == 0, "attempt {attempt}");
            assert_eq!(pace.due, now + Duration::from_secs(seconds));
            now = pace.due;
        }
        assert!(pace.succeeded(now));
        assert!(pace.failed(now), "the next outage is another one");
        assert_eq!(pace.due, now + PAUSE_MIN);
    }
}
