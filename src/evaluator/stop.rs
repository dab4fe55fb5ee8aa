//! The word to stop: told once, heard by everybody who waits.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Tells the evaluator to stop.
pub struct Stopper(watch::Sender<bool>);

/// Hears it.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A word that nobody has said yet, and who can say it.
    pub fn new() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Self(receiver))
    }

    /// Whether it was said.
    pub fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits so long, or until it is said; whether it was.
    pub async fn told_within(&self, wait: Duration) -> bool {
        let mut heard = self.0.clone();
        match timeout(wait, heard.wait_for(|told| *told)).await {
            Ok(Ok(_)) => true,
            // Nobody is left to say it: the wait has to pass all the same.
            Ok(Err(_)) => {
                tokio::time::sleep(wait).await;
                false
            }
            Err(_) => false,
        }
    }
}

impl Stopper {
    /// Says it.
    pub fn tell(&self) {
        self.0.send_replace(true);
    }
}
