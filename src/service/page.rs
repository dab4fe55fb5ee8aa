//! Pagination of lists.

/// The requested part of a list, already validated by the code that parsed the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Maximum number of entries.
    pub limit: u64,
    /// Number of entries to skip.
    pub offset: u64,
}

/// The requested part of a list, and the length of the whole list.
pub struct Page<T> {
    /// Oldest first.
    pub entries: Vec<T>,
    /// Length of the whole list.
    pub total: u64,
}

impl PageRequest {
    /// Takes the page from a list of length `total`.
    pub fn cut<T>(self, total: usize, all: impl Iterator<Item = T>) -> Page<T> {
        let skip = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.limit).unwrap_or(usize::MAX);
        Page {
            entries: all.skip(skip).take(take).collect(),
            total: total as u64,
        }
    }
}
