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
}

impl PublishAndWait {
    /// Checkpoints are taken at least once per `period`.
    pub fn new(publisher: Publisher, period: Duration) -> Self {
        PublishAndWait {
            publisher,
            period,
            pending: None,
        }
    }
}

impl Publish for PublishAndWait {
    /// The files of the manifest stay until the next one is in force, so they are opened when it is published.
    fn offer(&mut self, manifest: &Manifest) {
        self.pending = Some(manifest.clone());
    }

    fn before_trim(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Some(manifest) = &self.pending else {
            return Ok(());
        };
        let offer = self.publisher.offer(manifest)?;
        self.publisher.publish(&offer, &|| true)?;
        self.pending = None;
        if let Err(error) = self.publisher.sweep_if_due() {
            tracing::warn!(%error, "old objects could not be deleted yet");
        }
        Ok(())
    }

    fn period(&self) -> Duration {
        self.period
    }

    fn figures(&self) -> Arc<PublishFigures> {
        self.publisher.figures()
    }
}
