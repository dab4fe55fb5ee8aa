//! A stop signal: sent once, received by all tasks.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Sends the stop signal.
pub struct Stopper(watch::Sender<bool>);

/// Receives the stop signal.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Creates a signal that is not sent yet.
    pub fn new() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Self(receiver))
    }

    /// Whether the signal was sent.
    pub fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the signal, at most for `wait`. Returns whether it was sent.
    pub async fn told_within(&self, wait: Duration) -> bool {
        let mut heard = self.0.clone();
        match timeout(wait, heard.wait_for(|told| *told)).await {
            Ok(Ok(_)) => true,
            // The sender is gone; wait anyway.
            Ok(Err(_)) => {
                tokio::time::sleep(wait).await;
                false
            }
            Err(_) => false,
        }
    }
}

impl Stopper {
    /// Sends the signal.
    pub fn tell(&self) {
        self.0.send_replace(true);
    }
}
