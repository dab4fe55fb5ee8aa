//! The instants at which an expression is evaluated.

/// Instants at equal distances, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) start_ms: i64,
    pub(crate) step_ms: i64,
    /// At least 1, except in a subquery whose range holds no step.
    pub(crate) count: usize,
    /// The end that was asked for, at or after the last step. Subqueries are evaluated as far as that, which can be seen
    /// in errors only.
    pub(crate) end_ms: i64,
}

impl Steps {
    /// From `start_ms` at distances of `step_ms`, as far as `end_ms`.
    pub(crate) fn new(start_ms: i64, end_ms: i64, step_ms: i64) -> Steps {
        let count = if end_ms < start_ms {
            0
        } else {
            (end_ms - start_ms) / step_ms + 1
        };
        Steps {
            start_ms,
            step_ms,
            end_ms,
            count: usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    pub(crate) fn time_ms(&self, step: usize) -> i64 {
        self.start_ms + self.step_ms * step as i64
    }

    /// The first step alone.
    pub(crate) fn first(&self) -> Steps {
        Steps {
            count: self.count.min(1),
            end_ms: self.start_ms,
            ..*self
        }
    }
}
