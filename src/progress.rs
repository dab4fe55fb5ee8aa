//! How far a command has come that reads a whole data directory or backup.

/// Hears how far a command has come.
pub trait Progress {
    /// So many bytes are about to be read.
    fn expect(&self, bytes: u64);

    /// So many more bytes were read.
    fn advance(&self, bytes: u64);
}

/// Nobody is interested.
impl Progress for () {
    fn expect(&self, _: u64) {}
    fn advance(&self, _: u64) {}
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::Progress;

    /// Adds up what it hears.
    #[derive(Debug)]
    pub(crate) struct Heard {
        pub(crate) expected: Cell<u64>,
        pub(crate) read: Cell<u64>,
    }

    impl Progress for Heard {
        fn expect(&self, bytes: u64) {
            self.expected.set(self.expected.get() + bytes);
        }

        fn advance(&self, bytes: u64) {
            self.read.set(self.read.get() + bytes);
        }
    }

    impl Heard {
        pub(crate) const fn new() -> Self {
            Heard {
                expected: Cell::new(0),
                read: Cell::new(0),
            }
        }

        /// Asserts that exactly what was expected was read, and that there was something.
        #[track_caller]
        pub(crate) fn assert_all(&self) {
            assert!(self.expected.get() > 0, "{self:?}");
            assert_eq!(self.expected, self.read);
        }
    }
}
