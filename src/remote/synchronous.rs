//! Publishing within a checkpoint, for a cluster: the log is trimmed only after the root is stored.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use super::publisher::Publisher;
use crate::checkpoint::{Manifest, Publish, PublishFigures};

/// Publishes on the checkpointer's thread, before each trim of the log.
pub struct PublishAndWait {
    publisher: Publisher,
    period: Duration,
    /// The manifest in force, unless it is published.
    pending: Option<Manifest>,
    /// The last root that was published; the log store may name the one before, if a trim has failed.
    root: Option<String>,
}

impl PublishAndWait {
    /// Checkpoints are taken at least once per `period`.
    pub fn new(publisher: Publisher, period: Duration) -> Self {
        PublishAndWait {
            publisher,
            period,
            pending: None,
            root: None,
        }
    }
}

impl Publish for PublishAndWait {
    /// The files of the manifest stay until the next one is in force, so they are opened when it is published.
    fn offer(&mut self, manifest: &Manifest) {
        self.pending = Some(manifest.clone());
    }

    fn before_trim(&mut self) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        if let Some(manifest) = &self.pending {
            let offer = self.publisher.offer(manifest)?;
            let published = self.publisher.publish(&offer, &|| true)?;
            self.root = Some(published.root.to_string());
            self.pending = None;
        }
        Ok(self.root.clone())
    }

    /// Not before the log store names the newest root: until then it names an older one, whose objects must stay.
    fn trimmed(&mut self) {
        if let Err(error) = self.publisher.sweep_if_due() {
            tracing::warn!(%error, "old objects could not be deleted yet");
        }
    }

    fn period(&self) -> Duration {
        self.period
    }

    fn figures(&self) -> Arc<PublishFigures> {
        self.publisher.figures()
    }
}
