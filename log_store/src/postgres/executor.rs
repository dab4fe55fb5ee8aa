//! The runtime of a store: it runs on the caller's thread, during calls only.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// A runtime that may be dropped anywhere, also within another one.
pub(super) struct Executor(Option<Runtime>);

impl Executor {
    pub(super) fn new() -> io::Result<Self> {
        // The end of a connection is seen before anything is sent on it: the connection's task runs only during calls.
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(1)
            .build();
        runtime.map(|runtime| Executor(Some(runtime)))
    }

    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        match &self.0 {
            Some(runtime) => runtime.block_on(future),
            None => unreachable!("only the end of the executor takes its runtime"),
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a node that failed to start ended with a panic, because it dropped its store within its own runtime.
    #[test]
    fn an_executor_can_be_dropped_within_a_runtime() {
        let outer = Executor::new().unwrap();
        let inner = Executor::new().unwrap();
        assert_eq!(inner.block_on(async { 5 }), 5);
        outer.block_on(async { drop(inner) });
    }
}
