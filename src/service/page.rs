//! One page of a list.

/// Which part of a list is asked for; checked by whoever read the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Entries at most.
    pub limit: u64,
    /// Entries to skip.
    pub offset: u64,
}

/// That part, and how many entries the whole list has.
pub struct Page<T> {
    /// Oldest first.
    pub entries: Vec<T>,
    /// Of the whole list.
    pub total: u64,
}

impl PageRequest {
    /// Cuts the page out of a list of which `total` is the length.
    pub fn cut<T>(self, total: usize, all: impl Iterator<Item = T>) -> Page<T> {
        let skip = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.limit).unwrap_or(usize::MAX);
        Page {
            entries: all.skip(skip).take(take).collect(),
            total: total as u64,
        }
    }
}
